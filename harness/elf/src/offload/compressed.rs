//! Compressed bundles ("Clang Offload Bundler", compressed bundle): only the beginning is
//! unpacked, which holds the table of targets.

use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

pub(super) const COMPRESSED_MAGIC: &[u8] = b"CCOB";
/// `llvm::compression::Format::Zlib`
pub(super) const ZLIB: u16 = 0;
/// `llvm::compression::Format::Zstd`
pub(super) const ZSTD: u16 = 1;

/// As much as is unpacked; a table of targets is a few hundred bytes.
const HEAD: usize = 64 << 10;

/// The beginning of a compressed bundle.
pub(super) struct Head {
    /// The unpacked beginning.
    pub bytes: Vec<u8>,
    /// Bytes of the whole bundle when unpacked.
    pub uncompressed_size: u64,
    /// Bytes of the bundle in the file. The first version of the format does not say; then it is
    /// the header alone.
    pub length: usize,
}

/// Unpacks the beginning of a bundle that starts with the magic.
pub(super) fn head(bytes: &[u8]) -> Result<Head, String> {
    let fields = read_fields(bytes).ok_or("its header is cut short or of an unknown version")?;
    let length = match fields.file_size {
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
        None => fields.header,
    };
    if length > bytes.len() {
        return Err("it is cut short".into());
    }
    let packed = match fields.file_size {
        Some(_) => bytes.get(fields.header..length),
        None => bytes.get(fields.header..),
    };
    let packed = packed.ok_or("it is shorter than its header")?;
    let unpacked = match fields.method {
        ZLIB => unpack_zlib(packed),
        ZSTD => unpack_zstd(packed),
        other => return Err(format!("its compression method {other} is unknown")),
    };
    Ok(Head {
        bytes: unpacked.map_err(|problem| format!("it does not unpack: {problem}"))?,
        uncompressed_size: fields.uncompressed_size,
        length,
    })
}

struct Fields {
    method: u16,
    file_size: Option<u64>,
    uncompressed_size: u64,
    /// Bytes of the header.
    header: usize,
}

/// Version 1 has the uncompressed size only, version 2 both in 32 bits, version 3 in 64. A hash
/// of 64 bits ends the header.
fn read_fields(bytes: &[u8]) -> Option<Fields> {
    const HASH: usize = 8;
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let quad = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (file_size, uncompressed_size, sizes_end) = match half(4)? {
        1 => (None, word(8)?.into(), 12),
        2 => (Some(word(8)?.into()), word(12)?.into(), 16),
        3 => (Some(quad(8)?), quad(16)?, 24),
        _ => return None,
    };
    Some(Fields {
        method: half(6)?,
        file_size,
        uncompressed_size,
        header: sizes_end + HASH,
    })
}

fn unpack_zstd(packed: &[u8]) -> Result<Vec<u8>, String> {
    let decoder = StreamingDecoder::new(packed).map_err(|error| error.to_string())?;
    let mut unpacked = Vec::new();
    let outcome = decoder.take(HEAD as u64).read_to_end(&mut unpacked);
    outcome.map_err(|error| error.to_string())?;
    Ok(unpacked)
}

fn unpack_zlib(packed: &[u8]) -> Result<Vec<u8>, String> {
    use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};
    match decompress_to_vec_zlib_with_limit(packed, HEAD) {
        Ok(unpacked) => Ok(unpacked),
        // The limit is reached: what is there is the beginning.
        Err(error) if error.status == TINFLStatus::HasMoreOutput => Ok(error.output),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn compress(bundle: &[u8], version: u16, method: u16) -> Vec<u8> {
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        let packed = match method {
            ZLIB => miniz_oxide::deflate::compress_to_vec_zlib(bundle, 6),
            _ => compress_to_vec(bundle, CompressionLevel::Fastest),
        };
        let header = [20, 24, 32][usize::from(version) - 1];
        let (file, unpacked) = (header + packed.len(), bundle.len());
        let mut bytes = COMPRESSED_MAGIC.to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(method.to_le_bytes());
        match version {
            1 => bytes.extend((unpacked as u32).to_le_bytes()),
            2 => [file, unpacked]
                .iter()
                .for_each(|&size| bytes.extend((size as u32).to_le_bytes())),
            _ => [file, unpacked]
                .iter()
                .for_each(|&size| bytes.extend((size as u64).to_le_bytes())),
        }
        bytes.extend([0; 8]);
        assert_eq!(bytes.len(), header);
        bytes.extend(packed);
        bytes
    }

    #[test]
    fn unknown_versions_and_methods_are_named() {
        let mut bytes = compress(b"x", 3, ZSTD);
        bytes[6] = 9;
        assert!(head(&bytes).is_err_and(|problem| problem.contains('9')));
        bytes[4] = 4;
        assert!(head(&bytes).is_err_and(|problem| problem.contains("version")));
    }

    #[test]
    fn damaged_content_is_a_problem() {
        for method in [ZLIB, ZSTD] {
            let mut bytes = compress(&[1; 1000], 2, method);
            bytes[24..28].fill(0xee);
            assert!(head(&bytes).is_err_and(|problem| problem.contains("unpack")));
        }
    }

    proptest::proptest! {
        #[test]
        fn changed_bytes_never_panic(
            changes in proptest::collection::vec((0_usize..400, proptest::num::u8::ANY), 1..6),
            version in 1_u16..4,
            method in 0_u16..2,
        ) {
            let content: Vec<u8> = (0..2000_u32).map(|i| (i * i / 7) as u8).collect();
            let mut bytes = compress(&content, version, method);
            for (at, value) in changes {
                let length = bytes.len();
                bytes[at % length] = value;
            }
            let _ = head(&bytes);
        }
    }
}
