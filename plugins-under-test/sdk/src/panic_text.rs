//! What a panic said, and where: caught by a hook, because the payload knows no place.

use crate::last_error;
use std::panic::{PanicHookInfo, set_hook};
use std::sync::Once;

/// Replaces the default hook of this library's copy of the standard library, once.
///
/// The default hook may print a backtrace, and the symbols it reads for that keep the library's
/// file mapped for good. The host's own hook is another copy's, and not touched.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_hook(Box::new(record)));
}

/// Leaves the text where [`take`] finds it, and on standard error for panics that nobody catches.
fn record(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a payload that is no text");
    let text = match info.location() {
        Some(place) => format!("panicked at {place}: {message}"),
        None => format!("panicked: {message}"),
    };
    eprintln!("{text}");
    last_error::set(&text);
}

/// The text of the panic that was just caught on this thread.
pub(crate) fn take() -> String {
    last_error::text()
}
