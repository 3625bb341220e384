//! Every fault by name.

use std::time::Duration;

use crate::arithmetic::Arithmetic;
use crate::batchnorm::BatchnormFault as Bn;
use crate::behaviour::Behaviour;
use crate::fault::{Effect, Fault};
use crate::knobs::KnobFault as K;
use crate::memory::MemoryFault;
use crate::{graphs, inputs, memory, outputs};
use Effect::{Batchnorm, Claim, Graph, Input, Knob, Memory, Output, Reshaped, Unwritten, Wrapped};

macro_rules! faults {
    ($($name:literal: $effect:expr;)*) => {
        /// All of them.
        pub static FAULTS: &[Fault] = &[$(Fault { name: $name, effect: $effect }),*];
    };
}

faults! {
    // Convolutions: the sum.
    "conv-last-tap": Input(&["w"], inputs::last_tap);
    "conv-last-channel": Input(&["w"], inputs::last_channel);
    "conv-channel-tail": Input(&["w"], inputs::channel_tail);
    "conv-f16-accumulator": Effect::Arithmetic(Arithmetic::F16);
    "conv-bf16-accumulator": Effect::Arithmetic(Arithmetic::Bf16);
    "conv-bf16-partials": Effect::Arithmetic(Arithmetic::SplitBf16);
    "conv-f64-in-f32": Effect::Arithmetic(Arithmetic::F32);
    "conv-xf32-inputs": Input(&["x", "w", "dy"], inputs::rounded_to_xf32);
    "conv-bf16-inputs": Input(&["x", "w", "dy"], inputs::rounded_to_bf16);
    "conv-f32-inputs": Input(&["x", "w", "dy"], inputs::rounded_to_f32);
    // Convolutions: the window.
    "conv-dilation-ignored": Graph(graphs::dilation_ignored);
    "conv-stride-ignored": Graph(graphs::stride_ignored);
    "conv-padding-ignored": Graph(graphs::padding_ignored);
    "conv-stride-padding-swapped": Graph(graphs::stride_and_padding_swapped);
    "conv-paddings-swapped": Graph(graphs::paddings_swapped);
    "conv-window-axes-swapped": Graph(graphs::window_axes_swapped);
    "conv-border-wraps": Reshaped(graphs::padding_inside_image, "x", inputs::border_wraps);
    "conv-border-repeats": Reshaped(graphs::padding_inside_image, "x", inputs::border_repeats);
    // Convolutions: which element is which.
    "conv-true-convolution": Input(&["w"], inputs::flipped);
    "conv-next-group": Input(&["w"], inputs::next_group);
    "conv-nhwc-as-nchw": Input(&["x"], inputs::layout_ignored);
    "conv-filter-layout": Input(&["w"], inputs::layout_ignored);
    "conv-image-transposed": Input(&["x"], inputs::plane_transposed);
    "conv-filter-transposed": Input(&["w"], inputs::plane_transposed);
    "conv-row-shifted": Input(&["x"], inputs::row_shifted);
    "conv-channels-swapped": Output(&["y"], outputs::channels_swapped);
    "conv-last-tile": Output(&["y"], outputs::last_tile);
    "conv-first-image-everywhere": Output(&["y"], outputs::first_image_everywhere);
    "dgrad-filter-flipped": Input(&["w"], inputs::flipped);
    "dgrad-last-filter": Input(&["w"], inputs::last_filter);
    "dgrad-last-row": Input(&["dy"], inputs::last_row);
    "wgrad-last-image": Input(&["dy"], inputs::last_image);
    "wgrad-last-row": Input(&["dy"], inputs::last_row);
    "wgrad-flipped": Output(&["dw"], inputs::flipped);
    // Fused graphs.
    "fused-bias-last-axis": Reshaped(graphs::bias_on_last_axis, "bias", inputs::bias_cycled);
    "fused-bias-missing": Graph(graphs::bias_missing);
    "fused-bias-next-channel": Input(&["bias"], inputs::next_channel);
    "fused-bias-after-activation": Graph(graphs::bias_after_activation);
    "activation-missing": Graph(graphs::activation_missing);
    "activation-twice": Graph(graphs::activation_twice);
    // Pointwise.
    "relu-clips-ignored": Graph(graphs::clips_ignored);
    "relu-slope-ignored": Graph(graphs::slope_ignored);
    "activation-parameters-ignored": Graph(graphs::parameters_ignored);
    "activation-gradient-unmasked": Graph(graphs::gradient_unmasked);
    "pointwise-operands-swapped": Graph(graphs::operands_swapped);
    "pointwise-extremes-swapped": Graph(graphs::extremes_swapped);
    "pointwise-equality": Graph(graphs::equality_confused);
    "pointwise-square-missing": Graph(graphs::square_missing);
    "gelu-approximated": Graph(graphs::gelu_approximated);
    "gen-index-axis": Graph(graphs::axis_off_by_one);
    "pointwise-fast-math": Output(&["out"], outputs::fast_math);
    "pointwise-truth-255": Output(&["out"], outputs::truth_all_ones);
    "pointwise-broadcast-shifted": Input(&["in1"], inputs::next_channel);
    "pointwise-denormals-flushed": Output(&["out"], outputs::denormals_flushed);
    "pointwise-nan-swallowed": Output(&["out"], outputs::nan_swallowed);
    "pointwise-zero-sign": Output(&["out"], outputs::zero_sign_flipped);
    "pointwise-infinity-saturated": Output(&["out"], outputs::infinity_saturated);
    "index-32-bit": Wrapped;
    // Batch normalisation.
    "bn-unbiased-variance": Batchnorm(Bn::UnbiasedVariance);
    "bn-biased-running-variance": Batchnorm(Bn::BiasedRunningVariance);
    "bn-epsilon-missing": Graph(graphs::epsilon_missing);
    "bn-epsilon-outside-root": Batchnorm(Bn::EpsilonOutsideRoot);
    "bn-momentum-reversed": Graph(graphs::momentum_reversed);
    "bn-variance-for-inverse": Batchnorm(Bn::VarianceForInverse);
    "bn-one-pass-f32": Batchnorm(Bn::OnePassInF32);
    "bn-first-image-only": Batchnorm(Bn::FirstImageOnly);
    "bn-next-channel": Input(&["scale"], inputs::next_channel);
    "bn-gradients-swapped": Batchnorm(Bn::GradientsSwapped);
    "bn-mean-term-missing": Batchnorm(Bn::MeanTermMissing);
    "bn-scale-term-missing": Batchnorm(Bn::ScaleTermMissing);
    "bn-scale-missing": Batchnorm(Bn::ScaleMissing);
    // Any operation: what is written.
    "output-scaled": Output(&[], outputs::scaled);
    "output-truncated": Output(&[], outputs::truncated);
    "output-by-way-of-bf16": Output(&[], outputs::by_way_of_bf16);
    "output-f64-by-way-of-f32": Output(&[], outputs::by_way_of_f32);
    "output-zeros": Output(&[], outputs::zeros);
    "output-mean": Output(&[], outputs::mean);
    "output-last-element-doubled": Output(&[], outputs::last_element_doubled);
    "output-hundredth-of-channel": Output(&[], outputs::hundredth_of_channel);
    // Memory.
    "output-accumulated": Output(&[], outputs::accumulated);
    "output-never-written": Unwritten(memory::everything);
    "later-images-unwritten": Unwritten(memory::later_images);
    "last-element-unwritten": Unwritten(memory::last_element);
    "last-row-unwritten": Unwritten(memory::last_row);
    "side-outputs-unwritten": Unwritten(memory::side_outputs);
    "past-end-1": Memory(MemoryFault::PastEnd(1));
    "past-end-16": Memory(MemoryFault::PastEnd(16));
    "past-end-4096": Memory(MemoryFault::PastEnd(4096));
    "before-start-1": Memory(MemoryFault::BeforeStart(1));
    "before-start-16": Memory(MemoryFault::BeforeStart(16));
    "before-start-4096": Memory(MemoryFault::BeforeStart(4096));
    "read-past-end": Memory(MemoryFault::ReadPastEnd(16));
    "read-before-start": Memory(MemoryFault::ReadBeforeStart(16));
    "workspace-overrun-1": Memory(MemoryFault::Workspace { reported: 1000, written: 1001 });
    "workspace-under-reported": Memory(MemoryFault::Workspace { reported: 512, written: 4096 });
    "workspace-before-start": Memory(MemoryFault::BeforeWorkspace);
    "input-changed": Memory(MemoryFault::ChangesInput);
    "gaps-written": Memory(MemoryFault::Gaps);
    // Behaviour.
    "unsteady-element": Effect::Behaviour(Behaviour::Unsteady);
    "works-once": Effect::Behaviour(Behaviour::WorksOnce);
    "plan-shared": Effect::Behaviour(Behaviour::SharedPlan);
    "success-without-work": Effect::Behaviour(Behaviour::NoWork);
    "fails-after-work": Effect::Behaviour(Behaviour::FailsAfterWork);
    "error-swallowed": Unwritten(memory::second_half);
    "leak": Effect::Behaviour(Behaviour::Leaks);
    "thread-left": Effect::Behaviour(Behaviour::LeavesThread);
    "file-left": Effect::Behaviour(Behaviour::LeavesFile);
    "too-slow": Effect::Behaviour(Behaviour::Sleeps(Duration::from_secs(60)));
    "over-claim-true-convolution": Claim(graphs::mode_ignored);
    // Knobs.
    "knob-default-outside": Knob(K::DefaultOutside);
    "knob-least-refused": Knob(K::LeastRefused);
    "knob-anything-taken": Knob(K::AnythingTaken);
    "knob-other-results": Knob(K::OtherResults);
    "knob-benchmarking-results": Knob(K::BenchmarkingOtherResults);
    "knob-benchmarking-fails": Knob(K::BenchmarkingFails);
    "knob-limit-exceeded": Knob(K::LimitExceeded);
    "knob-limit-everywhere": Knob(K::LimitEverywhere);
    "knob-limit-default-least": Knob(K::LimitDefaultLeast);
    "knob-limit-below-least": Knob(K::LimitBelowLeast);
}
