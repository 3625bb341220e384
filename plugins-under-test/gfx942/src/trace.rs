//! A line per launch, for comparing runs: the kernel, a hash of its arguments, and hashes of all
//! elements that it reads and writes.
//!
//! `DNN_ASSAY_GFX942_TRACE` names a file, to which every process appends whole lines. Addresses
//! are no part of a line, and the kernels give the same bits everywhere, so the sorted lines of two
//! runs of the same cases are the same. Tracing waits for the stream around each launch.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use dnn_assay_abi::RawStream;
use dnn_assay_plugin_sdk::Error;
use sha2::{Digest, Sha256};

use crate::driver::Driver;
use crate::lower::{Launch, View};
use crate::parameters::element;

const FILE: &str = "DNN_ASSAY_GFX942_TRACE";
/// Digits of a hash.
const DIGITS: usize = 16;

/// The file of this process, if it traces.
pub(crate) fn file() -> Option<&'static File> {
    static OPENED: OnceLock<Option<File>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os(FILE).filter(|path| !path.is_empty())?;
        let opened = File::options().create(true).append(true).open(&path);
        opened
            .inspect_err(|error| eprintln!("{FILE}: {}: {error}", path.display()))
            .ok()
    };
    OPENED.get_or_init(open).as_ref()
}

/// Queues a launch, waits for it, and writes its line.
pub(crate) fn queue(
    launch: &Launch,
    driver: &Driver,
    stream: RawStream,
    mut file: &File,
) -> Result<(), Error> {
    let reads = hashes(&launch.reads, driver, stream)?;
    launch.queue(driver, stream)?;
    let writes = hashes(&launch.writes, driver, stream)?;
    let (name, [x, y, z]) = (launch.name(), launch.grid);
    let arguments = digits(Sha256::digest(launch.arguments()));
    let line = format!(
        "{name} {x}x{y}x{z} arguments {arguments} reads {} writes {}\n",
        reads.join(","),
        writes.join(",")
    );
    file.write_all(line.as_bytes())
        .map_err(|error| Error::internal(format!("{FILE}: {error}")))
}

fn hashes(views: &[View], driver: &Driver, stream: RawStream) -> Result<Vec<String>, Error> {
    views
        .iter()
        .filter(|view| view.address != 0)
        .map(|view| hash(view, driver, stream))
        .collect()
}

/// The elements in the order of their indices; what lies between them is left out.
fn hash(view: &View, driver: &Driver, stream: RawStream) -> Result<String, Error> {
    let size = size(view.kind);
    let axes = view.dims.iter().zip(&view.strides);
    let last: i64 = axes.map(|(dim, stride)| (dim - 1) * stride).sum();
    let mut bytes = vec![0u8; (last as usize + 1) * size];
    driver.copy_back(view.address, &mut bytes, stream)?;
    let mut hash = Sha256::new();
    let mut index = vec![0i64; view.dims.len()];
    loop {
        let at: i64 = index.iter().zip(&view.strides).map(|(i, s)| i * s).sum();
        let at = at as usize * size;
        hash.update(&bytes[at..at + size]);
        let Some(axis) = (0..index.len())
            .rev()
            .find(|&a| index[a] + 1 < view.dims[a])
        else {
            return Ok(digits(hash.finalize()));
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn size(kind: u32) -> usize {
    match kind {
        element::F32 | element::I32 => 4,
        element::F16 | element::BF16 => 2,
        element::I8 | element::U8 => 1,
        _ => 8,
    }
}

fn digits(hash: impl AsRef<[u8]>) -> String {
    let bytes = hash.as_ref().iter().take(DIGITS / 2);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
