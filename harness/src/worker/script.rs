//! Scripts: calls of the plugin ABI in any order and with any argument, made inside a worker and
//! told back step by step. They let a rule about the ABI be data in the parent: the worker only
//! does as it is told, and what it saw is judged elsewhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::config::LoadMode;
use super::outcome::Stopped;

/// What a worker is to do. Slots and indices are the script's own numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Script {
    /// Files that [`Step::Open`] opens.
    pub libraries: Vec<PathBuf>,
    /// How they are opened.
    pub load_mode: LoadMode,
    /// Serialized graphs, configurations and other bytes.
    pub blobs: Vec<Vec<u8>>,
    /// Tensors, aligned to 256 bytes, with their first contents. They lie in host memory and are
    /// copied to the plugin's memory and back for each execution.
    pub buffers: Vec<Vec<u8>>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Opens a library. [`Value::Failed`] holds the loader's text.
    Open {
        /// Index into [`Script::libraries`].
        library: u8,
    },
    /// Closes it.
    Close {
        /// The library.
        library: u8,
    },
    /// How many mappings of a library's file there are: [`Value::Number`].
    Mappings {
        /// The library.
        library: u8,
    },
    /// The file that each exported entry lies in: [`Value::Entries`].
    Entries {
        /// The library.
        library: u8,
    },
    /// One call of the ABI.
    Call {
        /// The library.
        library: u8,
        /// The call.
        call: Call,
    },
    /// Overwrites a blob, as a host that frees its buffers.
    Spoil {
        /// Index into [`Script::blobs`].
        blob: u8,
    },
    /// Brings a spoilt blob back.
    Mend {
        /// Index into [`Script::blobs`].
        blob: u8,
    },
    /// Fills a buffer with one byte.
    Fill {
        /// Index into [`Script::buffers`].
        buffer: u8,
        /// The byte.
        byte: u8,
    },
    /// Reads a buffer: [`Value::Bytes`].
    Read {
        /// Index into [`Script::buffers`].
        buffer: u8,
    },
    /// Copies all buffers to the device and back, as an execution does; nothing on the host:
    /// what the process of a plugin does without the plugin.
    MoveBuffers,
    /// Reads engine details again: [`Value::Data`].
    Look {
        /// The slot.
        details: u8,
    },
    /// Reads again every text that the plugin gave out as its own: [`Value::Changed`].
    Reread,
    /// Takes the log lines that arrived so far: [`Value::Log`].
    TakeLog,
    /// Repeats steps and measures after each round: [`Value::Series`]. The status is the first
    /// one that is not SUCCESS.
    Repeat {
        /// Rounds.
        rounds: u32,
        /// What to repeat.
        steps: Vec<Step>,
    },
    /// Runs lists of steps at the same time, each on a thread of its own with copies of all
    /// slots, blobs and buffers: [`Value::Threads`].
    Threads(Vec<Vec<Step>>),
}

/// Whether an output argument is given or NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Out {
    /// A valid pointer.
    Given,
    /// NULL.
    Null,
}

/// A handle or a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Object {
    /// NULL.
    Null,
    /// What an earlier step put into this slot.
    Slot(u8),
}

/// A `hipdnnPluginConstData_t` argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// NULL in place of the struct.
    Null,
    /// `{NULL, 0}`.
    NullBytes,
    /// A valid pointer and size 0.
    NoBytes,
    /// A blob of the script.
    Blob(u8),
    /// Bytes that [`Call::Serialize`] gave, copied.
    Saved(u8),
}

/// The workspace of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workspace {
    /// NULL, whatever the plan wants.
    Null,
    /// As large as the context said (NULL for 0), filled with this byte.
    Filled(u8),
}

/// New extents and strides of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The tensor.
    pub uid: i64,
    /// Its extents.
    pub dims: Vec<i64>,
    /// Its strides.
    pub strides: Vec<i64>,
}

/// A tensor of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The uid.
    pub uid: i64,
    /// Index into [`Script::buffers`]; `None` for a NULL pointer.
    pub buffer: Option<u8>,
    /// It stays in host memory, whatever the plugin's memory is: a run-time scalar.
    pub host: bool,
}

/// Where ids are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Elements of the array; `None` for NULL.
    pub ids: Option<u32>,
    /// `max_engines`.
    pub max: u32,
    /// The count.
    pub count: Out,
}

/// A call of the ABI.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(
    missing_docs,
    reason = "the fields are the ABI's arguments, by their names"
)]
pub enum Call {
    GetName(Out),
    GetVersion(Out),
    GetApiVersion(Out),
    GetType(Out),
    GetLastErrorString(Out),
    /// One of two callbacks of ours, or NULL.
    SetLoggingCallback(Option<u8>),
    SetLogLevel(i32),
    GetAllEngineIds(Room),
    GetEngineName {
        id: i64,
        out: Out,
    },
    Create {
        slot: u8,
        out: Out,
    },
    Destroy(Object),
    SetStream(Object),
    GetApplicableEngineIds {
        handle: Object,
        graph: Data,
        room: Room,
    },
    /// `preset`: the struct holds garbage, as the host of November 2025 leaves it.
    GetEngineDetails {
        handle: Object,
        id: i64,
        graph: Data,
        slot: u8,
        out: Out,
        preset: bool,
    },
    /// `None`: a NULL struct.
    DestroyEngineDetails {
        handle: Object,
        slot: Option<u8>,
    },
    GetWorkspaceSize {
        handle: Object,
        config: Data,
        graph: Data,
        out: Out,
    },
    CreateExecutionContext {
        handle: Object,
        config: Data,
        graph: Data,
        slot: u8,
        out: Out,
    },
    DestroyExecutionContext {
        handle: Object,
        context: Object,
    },
    GetWorkspaceSizeFromExecutionContext {
        handle: Object,
        context: Object,
        out: Out,
    },
    /// `buffers` is `None` for NULL. With overrides it is `ExecuteOpGraphWithOverrides`.
    ExecuteOpGraph {
        handle: Object,
        context: Object,
        workspace: Workspace,
        buffers: Option<Vec<Bound>>,
        overrides: Vec<Override>,
    },
    /// `SerializeExecutionContextWithEngineId`.
    Serialize {
        handle: Object,
        id: i64,
        context: Object,
        slot: u8,
        out: Out,
    },
    DestroySerialized {
        handle: Object,
        slot: Option<u8>,
    },
    /// `CreateExecutionContextFromSerialized`.
    Restore {
        handle: Object,
        data: Data,
        slot: u8,
        out: Out,
    },
}

impl Call {
    /// The exported symbol.
    pub fn symbol(&self) -> &'static str {
        match self {
            Self::GetName(_) => "hipdnnPluginGetName",
            Self::GetVersion(_) => "hipdnnPluginGetVersion",
            Self::GetApiVersion(_) => "hipdnnPluginGetApiVersion",
            Self::GetType(_) => "hipdnnPluginGetType",
            Self::GetLastErrorString(_) => "hipdnnPluginGetLastErrorString",
            Self::SetLoggingCallback(_) => "hipdnnPluginSetLoggingCallback",
            Self::SetLogLevel(_) => "hipdnnPluginSetLogLevel",
            Self::GetAllEngineIds(_) => "hipdnnEnginePluginGetAllEngineIds",
            Self::GetEngineName { .. } => "hipdnnEnginePluginGetEngineName",
            Self::Create { .. } => "hipdnnEnginePluginCreate",
            Self::Destroy(_) => "hipdnnEnginePluginDestroy",
            Self::SetStream(_) => "hipdnnEnginePluginSetStream",
            Self::GetApplicableEngineIds { .. } => "hipdnnEnginePluginGetApplicableEngineIds",
            Self::GetEngineDetails { .. } => "hipdnnEnginePluginGetEngineDetails",
            Self::DestroyEngineDetails { .. } => "hipdnnEnginePluginDestroyEngineDetails",
            Self::GetWorkspaceSize { .. } => "hipdnnEnginePluginGetWorkspaceSize",
            Self::CreateExecutionContext { .. } => "hipdnnEnginePluginCreateExecutionContext",
            Self::DestroyExecutionContext { .. } => "hipdnnEnginePluginDestroyExecutionContext",
            Self::GetWorkspaceSizeFromExecutionContext { .. } => {
                "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext"
            }
            Self::ExecuteOpGraph { overrides, .. } if overrides.is_empty() => {
                "hipdnnEnginePluginExecuteOpGraph"
            }
            Self::ExecuteOpGraph { .. } => "hipdnnEnginePluginExecuteOpGraphWithOverrides",
            Self::Serialize { .. } => "hipdnnEnginePluginSerializeExecutionContextWithEngineId",
            Self::DestroySerialized { .. } => "hipdnnEnginePluginDestroySerializedExecutionContext",
            Self::Restore { .. } => "hipdnnEnginePluginCreateExecutionContextFromSerialized",
        }
    }
}

/// A C string as the plugin left it, up to 8 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawText {
    /// The bytes before the NUL.
    pub bytes: Vec<u8>,
    /// A NUL came within 8 KiB.
    pub terminated: bool,
}

impl RawText {
    /// The text, lossy.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// What a step saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The call's status.
    pub status: Option<i32>,
    /// After a status other than SUCCESS: what `GetLastErrorString` set; `Some(None)` is NULL.
    pub error: Option<Option<RawText>>,
    /// The call wrote to a blob that it was given to read.
    pub wrote_input: bool,
    /// The rest.
    pub value: Value,
}

/// What a step saw besides a status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Nothing to tell.
    #[default]
    Nothing,
    /// The plugin does not export the function.
    Absent,
    /// The worker could not do the step.
    Failed(String),
    /// A text; `None` for NULL.
    Text(Option<RawText>),
    /// A size, a type or a count.
    Number(u64),
    /// Ids: those written as far as there was room, the count, and whether more was written.
    Ids {
        /// The ids.
        ids: Vec<i64>,
        /// What the count was set to.
        count: u32,
        /// Elements behind `max` were written.
        overflow: bool,
    },
    /// A handle or a context, as a number.
    Pointer(u64),
    /// A buffer of the plugin's.
    Data {
        /// Its address.
        address: u64,
        /// Its size.
        size: u64,
        /// Its bytes; empty where the address is NULL or the size cannot be.
        bytes: Vec<u8>,
    },
    /// The bytes of a buffer of ours.
    Bytes(Vec<u8>),
    /// Log lines.
    Log(Vec<LogEntry>),
    /// Texts that are not what they were, by function.
    Changed(Vec<String>),
    /// Use after each round.
    Series(Vec<Usage>),
    /// Results by thread.
    Threads(Vec<Vec<StepResult>>),
    /// Exported entry, file it lies in.
    Entries(Vec<(String, String)>),
}

/// A call of the log callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Which of our callbacks.
    pub callback: u8,
    /// `hipdnnSeverity_t`.
    pub severity: i32,
    /// The message; `None` for NULL.
    pub text: Option<RawText>,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes allocated from malloc.
    pub heap: u64,
    /// Resident bytes.
    pub resident: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

/// What came of a script: one result per step, as far as it got.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// Results in the order of the steps.
    pub results: Vec<StepResult>,
    /// Why the rest is missing.
    pub stopped: Option<Stopped>,
}
