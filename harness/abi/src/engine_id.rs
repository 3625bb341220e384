//! Engine ids: FNV-1a over the engine's name, as hipDNN's `StringUtil.hpp` computes it.

const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// The id of the engine called `name`: FNV-1a 64 of its bytes, reinterpreted as `i64`.
/// The empty name has id 0, not the hash's offset basis (a rule of hipDNN's).
pub const fn engine_id(name: &str) -> i64 {
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return 0;
    }
    let mut hash = OFFSET_BASIS;
    let mut i = 0;
    while i < bytes.len() {
        hash ^= bytes[i] as u64;
        hash = hash.wrapping_mul(PRIME);
        i += 1;
    }
    hash as i64
}

/// An id as the host prints it: `0x` and 16 upper-case hex digits.
pub fn format_engine_id(id: i64) -> String {
    format!("0x{id:016X}")
}

/// The engine names that hipDNN's own registry knows (`EngineNames.hpp`).
pub const REGISTERED_NAMES: &[&str] = &[
    "HIP_MLOPS_ENGINE",
    "HIPBLASLT_ENGINE",
    "MIOPEN_ENGINE",
    "MIOPEN_ENGINE_DETERMINISTIC",
    "ASM_SDPA_ENGINE",
    "ROCKE_ENGINE",
];

/// The registered name whose hash is `id`, if there is one.
pub fn registered_name(id: i64) -> Option<&'static str> {
    REGISTERED_NAMES
        .iter()
        .copied()
        .find(|name| engine_id(name) == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_vectors_of_the_registry() {
        for (name, id) in [
            ("HIP_MLOPS_ENGINE", -2478880896520848391),
            ("HIPBLASLT_ENGINE", 8768140637164053035),
            ("MIOPEN_ENGINE", 1563989756945604898),
            ("MIOPEN_ENGINE_DETERMINISTIC", -6748551569128940061),
            ("ASM_SDPA_ENGINE", 4714091817493728420),
            ("ROCKE_ENGINE", -5926441839403553378),
            ("a", -5808556873153909620),
            ("Vendor.FastConv/v2", -7616366515628718204),
            ("", 0),
        ] {
            assert_eq!(engine_id(name), id, "{name}");
        }
    }

    #[test]
    fn ids_print_as_the_host_prints_them() {
        assert_eq!(format_engine_id(-2), "0xFFFFFFFFFFFFFFFE");
        assert_eq!(registered_name(1563989756945604898), Some("MIOPEN_ENGINE"));
        assert_eq!(registered_name(1), None);
    }
}
