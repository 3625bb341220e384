//! Elements of strided buffers, packed and back.

use dnn_assay_graph::{DataType, Tensor};

use super::elements::{pack, unpack};

fn strided() -> Tensor {
    Tensor {
        strides: vec![1, 4],
        ..Tensor::packed(3, "y", DataType::Half, &[3, 2])
    }
}

#[test]
fn elements_come_in_logical_order_and_keep_their_bits() {
    // Memory holds 0, 1, 2, a gap, 4, 5, 6; a NaN's payload is part of its bits.
    let mut bytes: Vec<u8> = (0u16..7).flat_map(u16::to_le_bytes).collect();
    bytes[2..4].copy_from_slice(&0x7e5a_u16.to_le_bytes());
    let packed = pack(&strided(), &bytes).expect("it fits");
    let values: Vec<u16> = packed
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
        .collect();
    assert_eq!(values, [0, 4, 0x7e5a, 5, 2, 6]);
    let mut back = unpack(&strided(), &packed).expect("it fits");
    assert_eq!(back[6..8], [0, 0], "the gap");
    back[6..8].copy_from_slice(&3u16.to_le_bytes());
    assert_eq!(back, bytes);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(pack(&strided(), &[0; 13]), None);
    assert_eq!(unpack(&strided(), &[0; 10]), None);
    let empty = Tensor::packed(1, "x", DataType::Float, &[0, 4]);
    assert_eq!(pack(&empty, &[]), Some(Vec::new()));
}
