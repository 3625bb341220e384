//! When to use more than one thread. Results never depend on it.

/// Elements of simple work below which one thread is faster than waking others.
const GRAIN: usize = 1 << 14;

/// Whether work on this many elements is worth more than one thread.
pub(crate) fn worthwhile(elements: usize) -> bool {
    elements >= GRAIN && rayon::current_num_threads() > 1
}
