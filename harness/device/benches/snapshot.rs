//! How long it takes to look for unwritten elements and written gaps in an output that lies otherwise in
//! memory than in logical order, beside one that lies in that order.

use std::fs::File;
use std::os::unix::fs::FileExt;

use divan::counter::BytesCount;
use dnn_assay_device::{Arena, BufferSpec, Element, ElementView, Placement, Residence, Role, Run};

fn main() {
    divan::main();
}

/// 65 536 000 elements of f16: 2048 channels of 160 × 200.
const DIMS: [i64; 4] = [1, 2048, 160, 200];

#[derive(Clone, Copy, Debug)]
enum Layout {
    Nchw,
    Nhwc,
    /// Channels last, with a gap of 16 elements behind those of each pixel.
    NhwcWithGaps,
}

impl Layout {
    fn strides(self) -> Vec<i64> {
        let [_, channels, height, width] = DIMS;
        let pixel = match self {
            Self::Nchw => return vec![channels * height * width, height * width, width, 1],
            Self::Nhwc => channels,
            Self::NhwcWithGaps => channels + 16,
        };
        vec![height * width * pixel, 1, width * pixel, pixel]
    }
}

#[divan::bench(args = [Layout::Nchw, Layout::Nhwc, Layout::NhwcWithGaps], sample_count = 5, sample_size = 1)]
fn a_written_output(bencher: divan::Bencher<'_, '_>, layout: Layout) {
    let view = ElementView {
        element: Element::F16,
        dims: DIMS.to_vec(),
        strides: layout.strides(),
    };
    let size = view.byte_size().expect("it fits");
    let mut arena = Arena::new().expect("a memfd");
    let spec = BufferSpec {
        uid: 1,
        size,
        align: 16,
        placement: Placement::End,
        role: Role::Output,
        residence: Residence::Whole,
    };
    arena.prepare(&[spec]).expect("a layout");
    arena.poison(1, view.clone(), Run::First).expect("poison");
    write(&arena, &view, size);
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let snapshot = arena.snapshot(None).expect("a snapshot");
        assert!(snapshot.is_intact() && snapshot.buffers[0].unwritten == 0);
    });
}

/// Zero into every element, and nothing between them.
fn write(arena: &Arena, view: &ElementView, size: u64) {
    let file = File::from(arena.descriptor().try_clone_to_owned().expect("a file"));
    let start = arena.layout().slots[0].bytes.start;
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, start).expect("its bytes");
    view.for_each_offset(|at| bytes[at as usize..at as usize + 2].fill(0));
    file.write_all_at(&bytes, start).expect("its bytes");
}
