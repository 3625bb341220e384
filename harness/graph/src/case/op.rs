//! The operations and chains of operations that cases are made of.

use crate::enums::PointwiseMode;
use crate::semantics::{Direction, pointwise, pointwise_modes};
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// Which of the three convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConvDirection {
    /// y from x and w.
    Fprop,
    /// dx from dy and w.
    Dgrad,
    /// dw from x and dy.
    Wgrad,
}

impl ConvDirection {
    /// The name in case ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fprop => "fprop",
            Self::Dgrad => "dgrad",
            Self::Wgrad => "wgrad",
        }
    }
}

/// Which of the batchnorm operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BatchnormPhase {
    /// With the inverse variance given.
    Inference,
    /// With the variance and epsilon given.
    InferenceVariance,
    /// With statistics of the batch.
    Training,
    /// Gradients.
    Backward,
}

impl BatchnormPhase {
    /// The name in case ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::InferenceVariance => "inference_var",
            Self::Training => "training",
            Self::Backward => "backward",
        }
    }
}

/// An operation or a fused chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `conv.fprop`, `conv.dgrad`, `conv.wgrad`.
    Conv(ConvDirection),
    /// `conv.fprop+bias`.
    ConvBias,
    /// `conv.fprop+relu_fwd`, or another forward activation.
    ConvActivation(PointwiseMode),
    /// `conv.fprop+bias+relu_fwd`, or another forward activation.
    ConvBiasActivation(PointwiseMode),
    /// `batchnorm.inference` and the others.
    Batchnorm(BatchnormPhase),
    /// `batchnorm.training+relu_fwd`; the other forward phases and activations too.
    BatchnormActivation(BatchnormPhase, PointwiseMode),
    /// `batchnorm.inference+relu_bwd+batchnorm.backward`, or another backward activation.
    BatchnormActivationBackward(PointwiseMode),
    /// `pointwise.add` and the 46 other modes.
    Pointwise(PointwiseMode),
}

static OPS: LazyLock<Vec<(String, Op)>> =
    LazyLock::new(|| list().into_iter().map(|op| (op.to_string(), op)).collect());

static BY_NAME: LazyLock<HashMap<&'static str, Op>> =
    LazyLock::new(|| OPS.iter().map(|(name, op)| (name.as_str(), *op)).collect());

fn activations(direction: Direction) -> impl Iterator<Item = PointwiseMode> {
    pointwise_modes()
        .filter(move |row| row.direction == direction)
        .map(|row| row.mode)
}

fn list() -> Vec<Op> {
    use BatchnormPhase::*;
    let forward = || activations(Direction::Forward);
    let mut ops = vec![
        Op::Conv(ConvDirection::Fprop),
        Op::Conv(ConvDirection::Dgrad),
        Op::Conv(ConvDirection::Wgrad),
        Op::ConvBias,
    ];
    ops.extend(forward().map(Op::ConvActivation));
    ops.extend(forward().map(Op::ConvBiasActivation));
    ops.extend([Inference, InferenceVariance, Training, Backward].map(Op::Batchnorm));
    for phase in [Inference, InferenceVariance, Training] {
        ops.extend(forward().map(|mode| Op::BatchnormActivation(phase, mode)));
    }
    ops.extend(activations(Direction::Backward).map(Op::BatchnormActivationBackward));
    ops.extend(pointwise_modes().map(|row| Op::Pointwise(row.mode)));
    ops
}

impl Op {
    /// Every operation and chain, in a fixed order.
    pub fn all() -> impl Iterator<Item = Self> {
        OPS.iter().map(|(_, op)| *op)
    }

    /// Every name, for messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPS.iter().map(|(name, _)| name.as_str())
    }

    /// The operation with this name, such as `conv.fprop+bias+relu_fwd`.
    pub fn from_name(name: &str) -> Option<Self> {
        BY_NAME.get(name).copied()
    }

    /// `conv`, `batchnorm` or `pointwise`.
    pub const fn family(self) -> &'static str {
        match self {
            Self::Conv(_)
            | Self::ConvBias
            | Self::ConvActivation(_)
            | Self::ConvBiasActivation(_) => "conv",
            Self::Batchnorm(_)
            | Self::BatchnormActivation(..)
            | Self::BatchnormActivationBackward(_) => "batchnorm",
            Self::Pointwise(_) => "pointwise",
        }
    }

    /// What follows the family in the name: `fprop`, `fprop+bias`, `inference_var`, `add`.
    pub fn direction(self) -> String {
        let name = self.to_string();
        name.split_once('.')
            .map_or(String::new(), |(_, rest)| rest.to_owned())
    }

    /// The pointwise mode in it, if there is one other than the bias.
    pub const fn mode(self) -> Option<PointwiseMode> {
        match self {
            Self::ConvActivation(mode)
            | Self::ConvBiasActivation(mode)
            | Self::BatchnormActivation(_, mode)
            | Self::BatchnormActivationBackward(mode)
            | Self::Pointwise(mode) => Some(mode),
            Self::Conv(_) | Self::ConvBias | Self::Batchnorm(_) => None,
        }
    }

    /// Whether its graph has more than one node, and so virtual tensors.
    pub const fn is_fused(self) -> bool {
        !matches!(
            self,
            Self::Conv(_) | Self::Batchnorm(_) | Self::Pointwise(_)
        )
    }

    /// Whether it is a convolution or starts with one.
    pub fn is_conv(self) -> bool {
        self.family() == "conv"
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |mode| pointwise(mode).name;
        match *self {
            Self::Conv(direction) => write!(f, "conv.{}", direction.name()),
            Self::ConvBias => f.write_str("conv.fprop+bias"),
            Self::ConvActivation(mode) => write!(f, "conv.fprop+{}", name(mode)),
            Self::ConvBiasActivation(mode) => write!(f, "conv.fprop+bias+{}", name(mode)),
            Self::Batchnorm(phase) => write!(f, "batchnorm.{}", phase.name()),
            Self::BatchnormActivation(phase, mode) => {
                write!(f, "batchnorm.{}+{}", phase.name(), name(mode))
            }
            Self::BatchnormActivationBackward(mode) => {
                write!(f, "batchnorm.inference+{}+batchnorm.backward", name(mode))
            }
            Self::Pointwise(mode) => write!(f, "pointwise.{}", name(mode)),
        }
    }
}
