//! Streams and events: a thread per stream, work in the order in which it was queued.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dnn_assay_abi::gpu::Opaque;

type Job = Box<dyn FnOnce() + Send>;

/// A stream; the null stream is the one numbered 0.
pub(crate) struct Stream {
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    jobs: VecDeque<Job>,
    running: bool,
    closed: bool,
}

static STREAMS: Mutex<BTreeMap<usize, Arc<Stream>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicUsize = AtomicUsize::new(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that is not null and points at nothing.
fn handle(number: usize) -> Opaque {
    ptr::without_provenance_mut(number << 4)
}

/// A new stream's handle.
pub(crate) fn create() -> Opaque {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    lock(&STREAMS).insert(number, Stream::start());
    handle(number)
}

/// The stream of a handle; the null stream starts when it is first asked for.
pub(crate) fn find(stream: Opaque) -> Option<Arc<Stream>> {
    let mut streams = lock(&STREAMS);
    if stream.is_null() || crate::knobs::knobs().one_stream {
        return Some(streams.entry(0).or_insert_with(Stream::start).clone());
    }
    streams.get(&(stream.addr() >> 4)).cloned()
}

/// Ends a stream after its work.
pub(crate) fn destroy(stream: Opaque) -> bool {
    let removed = lock(&STREAMS).remove(&(stream.addr() >> 4));
    if let Some(stream) = &removed {
        stream.wait();
        lock(&stream.queue).closed = true;
        stream.changed.notify_all();
    }
    removed.is_some()
}

/// Waits for every stream.
pub(crate) fn wait_for_all() {
    let streams: Vec<_> = lock(&STREAMS).values().cloned().collect();
    for stream in streams {
        stream.wait();
    }
}

impl Stream {
    fn start() -> Arc<Self> {
        let stream = Arc::new(Self {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                running: false,
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let worker = stream.clone();
        std::thread::spawn(move || worker.work());
        stream
    }

    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                queue.running = true;
                drop(queue);
                job();
                queue = lock(&self.queue);
                queue.running = false;
                self.changed.notify_all();
            } else if queue.closed {
                return;
            } else {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Queues work.
    pub(crate) fn push(&self, job: impl FnOnce() + Send + 'static) {
        lock(&self.queue).jobs.push_back(Box::new(job));
        self.changed.notify_all();
    }

    /// Whether all work is done.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        queue.jobs.is_empty() && !queue.running
    }

    /// Waits for all work queued so far and since.
    pub(crate) fn wait(&self) {
        let mut queue = lock(&self.queue);
        while !queue.jobs.is_empty() || queue.running {
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// An event: when it was last reached.
#[derive(Default)]
pub(crate) struct Event {
    state: Mutex<EventState>,
    reached: Condvar,
}

#[derive(Default)]
struct EventState {
    pending: usize,
    at: Option<Instant>,
}

static EVENTS: Mutex<BTreeMap<usize, Arc<Event>>> = Mutex::new(BTreeMap::new());

/// A new event's handle.
pub(crate) fn create_event() -> Opaque {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    lock(&EVENTS).insert(number, Arc::default());
    handle(number)
}

/// The event of a handle.
pub(crate) fn find_event(event: *mut c_void) -> Option<Arc<Event>> {
    lock(&EVENTS).get(&(event.addr() >> 4)).cloned()
}

/// Forgets an event; work that records it keeps it.
pub(crate) fn destroy_event(event: Opaque) -> bool {
    lock(&EVENTS).remove(&(event.addr() >> 4)).is_some()
}

impl Event {
    /// Records it in a stream.
    pub(crate) fn record(self: Arc<Self>, stream: &Stream) {
        lock(&self.state).pending += 1;
        stream.push(move || {
            let mut state = lock(&self.state);
            state.pending -= 1;
            state.at = Some(Instant::now());
            self.reached.notify_all();
        });
    }

    /// Whether everything recorded was reached.
    pub(crate) fn is_reached(&self) -> bool {
        lock(&self.state).pending == 0
    }

    /// Waits until everything recorded was reached.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while state.pending > 0 {
            state = self
                .reached
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// When it was reached; `None` if it never was, or will be again.
    pub(crate) fn at(&self) -> Option<Instant> {
        let state = lock(&self.state);
        state.at.filter(|_| state.pending == 0)
    }
}
