//! What memory holds before the plugin writes it: poison in outputs, canaries around buffers.

use serde::{Deserialize, Serialize};

/// The element type of an output, as far as poison is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Element {
    /// IEEE binary64.
    F64,
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// An integer, a boolean, or a type without NaN payloads, of this many bytes (1, 2, 4 or 8).
    /// Types narrower than a byte count as bytes.
    Sentinel(u8),
}

/// Which poison: the second differs from the first in every element, so that an element that
/// holds poison after both was not written, whatever value it should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Run {
    /// The poison of the first execution.
    #[default]
    First,
    /// The poison of the execution that confirms a suspicion.
    Second,
}

/// The bytes of one poisoned element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: [u8; 8],
    len: u8,
}

impl Pattern {
    /// The pattern's bytes, as many as the element has.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn of<const N: usize>(value: [u8; N]) -> Self {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&value);
        Self {
            bytes,
            len: N as u8,
        }
    }

    /// Repeats the pattern over `target`, starting with its first byte.
    pub fn fill(&self, target: &mut [u8]) {
        let mut filled = usize::from(self.len).min(target.len());
        target[..filled].copy_from_slice(&self.bytes[..filled]);
        while filled < target.len() {
            let more = filled.min(target.len() - filled);
            target.copy_within(..more, filled);
            filled += more;
        }
    }
}

impl Element {
    /// Bytes per element.
    pub const fn size(self) -> u8 {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Sentinel(bytes) => bytes,
        }
    }

    /// The poison of one element: a quiet NaN with a payload that arithmetic does not produce
    /// for floats, a sentinel for the rest. Little-endian, as the tensors are.
    pub fn poison(self, run: Run) -> Pattern {
        let first = run == Run::First;
        match self {
            Self::F64 => Pattern::of(
                if first {
                    0x7FFA_55A5_0D1E_A001u64
                } else {
                    0xFFFB_5A3C_0BAD_B002
                }
                .to_le_bytes(),
            ),
            Self::F32 => {
                Pattern::of(if first { 0x7FE5_A5A1u32 } else { 0xFFDB_3C52 }.to_le_bytes())
            }
            Self::F16 => Pattern::of(if first { 0x7EA5u16 } else { 0xFF5A }.to_le_bytes()),
            Self::Bf16 => Pattern::of(if first { 0x7FE5u16 } else { 0xFFDA }.to_le_bytes()),
            Self::Sentinel(bytes) => {
                let value = if first {
                    0xA5A5_A5A5_A5A5_A5A5u64
                } else {
                    0x5B5B_5B5B_5B5B_5B5B
                };
                let mut pattern = Pattern::of(value.to_le_bytes());
                pattern.len = bytes.clamp(1, 8);
                pattern
            }
        }
    }
}

/// The canary at byte `offset` of the arena. It depends on the place, so that a copy of
/// neighbouring bytes is noticed, and it is never 0 and never 0xFF.
pub const fn canary_byte(offset: u64) -> u8 {
    let mixed = (offset ^ 0x5EED).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1 + ((mixed >> 56) % 0xFE) as u8
}

/// Writes the canary of the bytes that start at `offset` of the arena.
pub fn fill_canary(offset: u64, target: &mut [u8]) {
    for (byte, at) in target.iter_mut().zip(offset..) {
        *byte = canary_byte(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Element; 8] = [
        Element::F64,
        Element::F32,
        Element::F16,
        Element::Bf16,
        Element::Sentinel(1),
        Element::Sentinel(2),
        Element::Sentinel(4),
        Element::Sentinel(8),
    ];

    #[test]
    fn the_two_poisons_differ_in_every_byte_of_a_sentinel_and_as_elements() {
        for element in ALL {
            let (first, second) = (element.poison(Run::First), element.poison(Run::Second));
            assert_eq!(first.bytes().len(), usize::from(element.size()));
            assert_ne!(first, second, "{element:?}");
        }
    }

    #[test]
    fn float_poison_is_nan() {
        for run in [Run::First, Run::Second] {
            let f64 = Element::F64.poison(run).bytes().try_into().unwrap();
            assert!(f64::from_le_bytes(f64).is_nan());
            let f32 = Element::F32.poison(run).bytes().try_into().unwrap();
            assert!(f32::from_le_bytes(f32).is_nan());
            let half: [u8; 2] = Element::F16.poison(run).bytes().try_into().unwrap();
            let half = u16::from_le_bytes(half);
            assert!(half & 0x7C00 == 0x7C00 && half & 0x03FF != 0);
            let brain: [u8; 2] = Element::Bf16.poison(run).bytes().try_into().unwrap();
            assert!(f32::from_bits(u32::from(u16::from_le_bytes(brain)) << 16).is_nan());
        }
    }

    #[test]
    fn canaries_depend_on_the_place() {
        let mut bytes = [0; 256];
        fill_canary(4096, &mut bytes);
        assert_eq!(bytes[7], canary_byte(4103));
        let repeats = bytes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(repeats < 16, "{repeats}");
        assert!(bytes.iter().all(|&byte| byte != 0 && byte != 0xFF));
    }

    #[test]
    fn fill_repeats_and_truncates() {
        let mut bytes = [0; 5];
        Element::F16.poison(Run::First).fill(&mut bytes);
        assert_eq!(bytes, [0xA5, 0x7E, 0xA5, 0x7E, 0xA5]);
    }
}
