//! A host for tests: opens a plugin as the real one does, and calls it over the C ABI.

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, RawContext, RawHandle, engine_id};
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::wire::{
    EngineConfig, EngineDetails, Generation, read_engine_details, write_engine_config, write_graph,
};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, PointwiseMode, Tensor};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

/// An opened plugin with one handle.
pub struct Host {
    library: libloading::Library,
    pub handle: RawHandle,
}

/// A failure of a plugin's function: its status, and the last-error text.
#[derive(Debug, PartialEq)]
pub struct Failure(pub PluginStatus, pub String);

impl Host {
    pub fn open(path: &Path) -> Self {
        assert!(path.exists(), "{} is not built", path.display());
        // SAFETY: the plugins under test have no initialisers that matter.
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        let mut host = Self {
            library,
            handle: null_mut(),
        };
        let mut handle = null_mut();
        // SAFETY: the out argument is valid.
        let status = unsafe { host.function::<f::Create>("Create")(&mut handle) };
        host.checked(status).unwrap();
        host.handle = handle;
        host
    }

    /// A function by its name without `hipdnnEnginePlugin` or `hipdnnPlugin`.
    pub fn function<F: Copy>(&self, name: &str) -> F {
        self.try_function(name)
            .unwrap_or_else(|| panic!("{name} is not exported"))
    }

    pub fn try_function<F: Copy>(&self, name: &str) -> Option<F> {
        ["hipdnnEnginePlugin", "hipdnnPlugin"]
            .iter()
            .find_map(|prefix| {
                // SAFETY: callers name the type that the ABI gives the function.
                unsafe { self.library.get::<F>(format!("{prefix}{name}")) }
                    .ok()
                    .map(|f| *f)
            })
    }

    pub fn last_error(&self) -> String {
        let mut text: *const c_char = null();
        // SAFETY: the out argument is valid, and the text NUL-terminated.
        unsafe {
            self.function::<f::GetLastErrorString>("GetLastErrorString")(&mut text);
            CStr::from_ptr(text).to_str().unwrap().to_owned()
        }
    }

    pub fn checked(&self, status: PluginStatus) -> Result<(), Failure> {
        if status == PluginStatus::SUCCESS {
            return Ok(());
        }
        Err(Failure(status, self.last_error()))
    }

    pub fn text(&self, name: &str) -> String {
        let mut text: *const c_char = null();
        // SAFETY: the out argument is valid, and the text NUL-terminated.
        unsafe {
            self.checked(self.function::<f::GetText>(name)(&mut text))
                .unwrap();
            CStr::from_ptr(text).to_str().unwrap().to_owned()
        }
    }

    pub fn engines(&self) -> Vec<i64> {
        let all: f::GetAllEngineIds = self.function("GetAllEngineIds");
        let mut count = 0;
        // SAFETY: a count-only call, then an array of that size.
        unsafe {
            self.checked(all(null_mut(), 0, &mut count)).unwrap();
            let mut ids = vec![0; count as usize];
            self.checked(all(ids.as_mut_ptr(), count, &mut count))
                .unwrap();
            assert_eq!(ids.len(), count as usize);
            ids
        }
    }

    pub fn engine_name(&self, id: i64) -> Result<String, Failure> {
        let mut text: *const c_char = null();
        // SAFETY: the out argument is valid, and the text NUL-terminated.
        unsafe {
            self.checked(self.function::<f::GetEngineName>("GetEngineName")(
                id, &mut text,
            ))?;
            let name = CStr::from_ptr(text).to_str().unwrap().to_owned();
            assert_eq!(engine_id(&name), id);
            Ok(name)
        }
    }

    pub fn applicable(&self, graph: &[u8]) -> Result<Vec<i64>, Failure> {
        let mut ids = vec![0; 8];
        let mut count = 0;
        // SAFETY: the graph's bytes and the array live for the call.
        let status = unsafe {
            self.function::<f::GetApplicableEngineIds>("GetApplicableEngineIds")(
                self.handle,
                &ConstData::borrow(graph),
                ids.as_mut_ptr(),
                8,
                &mut count,
            )
        };
        self.checked(status)?;
        ids.truncate(count as usize);
        Ok(ids)
    }

    /// Whether the first engine takes the graph, in both generations of the wire alike where both
    /// can say it.
    pub fn takes(&self, graph: &Graph) -> bool {
        let current = write_graph(graph, Generation::Current).unwrap();
        let takes = !self.applicable(&current).unwrap().is_empty();
        if let Ok(older) = write_graph(graph, Generation::Nov2025) {
            assert_eq!(!self.applicable(&older).unwrap().is_empty(), takes);
        }
        takes
    }

    pub fn details(&self, id: i64, graph: &[u8]) -> Result<EngineDetails, Failure> {
        let mut data = ConstData::EMPTY;
        let get: f::GetEngineDetails = self.function("GetEngineDetails");
        let destroy: f::DestroyData = self.function("DestroyEngineDetails");
        // SAFETY: arguments live for the calls, and the plugin owns the details between them.
        unsafe {
            self.checked(get(self.handle, id, &ConstData::borrow(graph), &mut data))?;
            let bytes = std::slice::from_raw_parts(data.ptr.cast::<u8>(), data.size).to_vec();
            self.checked(destroy(self.handle, &mut data))?;
            assert!(
                data.ptr.is_null() && data.size == 0,
                "details are not zeroed"
            );
            Ok(read_engine_details(&bytes).unwrap())
        }
    }

    /// A context for the graph; its bytes and the configuration's are overwritten afterwards.
    pub fn plan(&self, id: i64, graph: &Graph, wire: Generation) -> Result<RawContext, Failure> {
        let mut graph = write_graph(graph, wire).unwrap();
        let config = EngineConfig {
            engine_id: id,
            knobs: vec![],
        };
        let mut config = write_engine_config(&config, wire).unwrap();
        let create: f::CreateExecutionContext = self.function("CreateExecutionContext");
        let mut context = null_mut();
        // SAFETY: arguments live for the call.
        let status = unsafe {
            create(
                self.handle,
                &ConstData::borrow(&config),
                &ConstData::borrow(&graph),
                &mut context,
            )
        };
        graph.fill(0xA5);
        config.fill(0xA5);
        self.checked(status)?;
        assert!(!context.is_null());
        Ok(context)
    }

    pub fn workspace(&self, context: RawContext) -> usize {
        let mut size = usize::MAX;
        let get: f::GetWorkspaceSizeFromExecutionContext =
            self.function("GetWorkspaceSizeFromExecutionContext");
        // SAFETY: the out argument is valid.
        self.checked(unsafe { get(self.handle, context, &mut size) })
            .unwrap();
        size
    }

    pub fn execute(
        &self,
        context: RawContext,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
    ) -> Result<(), Failure> {
        let execute: f::ExecuteOpGraph = self.function("ExecuteOpGraph");
        // SAFETY: callers give buffers for the tensors of the context's graph.
        let status = unsafe {
            execute(
                self.handle,
                context,
                workspace,
                buffers.as_ptr(),
                buffers.len() as u32,
            )
        };
        self.checked(status)
    }

    pub fn destroy_context(&self, context: RawContext) -> Result<(), Failure> {
        let destroy: f::DestroyExecutionContext = self.function("DestroyExecutionContext");
        // SAFETY: a context of this plugin, or one that it must refuse.
        self.checked(unsafe { destroy(self.handle, context) })
    }

    /// Plans and executes the graph on f32 tensors: the outputs, in memory order.
    pub fn run(&self, graph: &Graph, inputs: &[(i64, &[f32])]) -> BTreeMap<i64, Vec<f32>> {
        let bytes = inputs.iter().map(|(uid, v)| (*uid, to_bytes(v))).collect();
        self.run_bytes(graph, bytes)
            .into_iter()
            .map(|(uid, bytes)| (uid, to_floats(&bytes)))
            .collect()
    }

    /// Plans and executes the graph in both generations: the outputs' bytes, in memory order.
    pub fn run_bytes(
        &self,
        graph: &Graph,
        inputs: BTreeMap<i64, Vec<u8>>,
    ) -> BTreeMap<i64, Vec<u8>> {
        let mut results = Vec::new();
        for wire in [Generation::Current, Generation::Nov2025] {
            if write_graph(graph, wire).is_err() {
                continue;
            }
            let mut memory = inputs.clone();
            for tensor in graph.outputs() {
                memory.insert(tensor.uid, vec![0xFF; tensor.byte_size().unwrap()]);
            }
            let buffers: Vec<DeviceBuffer> = memory
                .iter_mut()
                .map(|(&uid, bytes)| DeviceBuffer {
                    uid,
                    ptr: bytes.as_mut_ptr().cast(),
                })
                .collect();
            let context = self.plan(self.engines()[0], graph, wire).unwrap();
            assert_eq!(self.workspace(context), 0);
            self.execute(context, null_mut(), &buffers).unwrap();
            self.destroy_context(context).unwrap();
            for (uid, bytes) in &inputs {
                assert_eq!(&memory[uid], bytes, "input {uid} has changed");
                memory.remove(uid);
            }
            results.push(memory);
        }
        assert!(results.iter().all(|result| *result == results[0]));
        results.swap_remove(0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the handle is this plugin's, and destroyed once.
        let status = unsafe { self.function::<f::Destroy>("Destroy")(self.handle) };
        if !std::thread::panicking() {
            self.checked(status).unwrap();
        }
    }
}

pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

pub fn to_floats(bytes: &[u8]) -> Vec<f32> {
    let (chunks, _) = bytes.as_chunks();
    chunks.iter().map(|v| f32::from_ne_bytes(*v)).collect()
}

/// Where cargo puts what it builds for this profile.
pub fn target_dir() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_owned()
}

/// Whether a file is mapped into this process.
pub fn is_mapped(path: &Path) -> bool {
    let name = path.canonicalize().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(name.to_str().unwrap())
}

/// Names of the symbols that a library exports.
pub fn exported(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let mut names: Vec<String> = elf
        .dynsyms
        .iter()
        .filter(|symbol| symbol.st_shndx != 0 && symbol.is_function())
        .map(|symbol| elf.dynstrtab[symbol.st_name].to_owned())
        .collect();
    assert_eq!(
        names.len(),
        elf.dynsyms.iter().filter(|s| s.st_shndx != 0).count(),
        "something that is no function is exported"
    );
    names.sort();
    names
}

/// The text of the note `.note.dnn_assay`, found as a program header shows it.
pub fn memory_note(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    elf.iter_note_headers(&bytes)?
        .filter_map(Result::ok)
        .find(|note| note.name == "DNN_ASSAY")
        .map(|note| String::from_utf8(note.desc.to_vec()).unwrap())
}

/// The ABI's symbols without those named, sorted.
pub fn abi_symbols_without(absent: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = dnn_assay_abi::symbols::ENGINE_PLUGIN
        .iter()
        .map(|symbol| symbol.name.to_owned())
        .filter(|name| !absent.iter().any(|a| name.ends_with(a)))
        .collect();
    names.sort();
    names
}

/// A graph of one pointwise node: operands 1, 2, 3 and output 9, packed f32.
pub fn pointwise(mode: PointwiseMode, operands: &[&[i64]], out: &[i64]) -> Graph {
    let mut tensors: Vec<Tensor> = operands
        .iter()
        .enumerate()
        .map(|(i, dims)| Tensor::packed(i as i64 + 1, "", DataType::Float, dims))
        .collect();
    tensors.push(Tensor::packed(9, "", DataType::Float, out));
    let attributes = PointwiseAttributes {
        operation: mode,
        in_0_tensor_uid: 1,
        in_1_tensor_uid: (operands.len() > 1).then_some(2),
        in_2_tensor_uid: (operands.len() > 2).then_some(3),
        out_0_tensor_uid: 9,
        ..Default::default()
    };
    graph(tensors, vec![attributes.into()])
}

/// A graph of these tensors and nodes, computed in f32.
pub fn graph(tensors: Vec<Tensor>, nodes: Vec<Attributes>) -> Graph {
    Graph {
        compute_type: DataType::Float,
        intermediate_type: DataType::Float,
        io_type: DataType::Float,
        tensors,
        nodes: nodes
            .into_iter()
            .map(|attributes| Node {
                name: String::new(),
                compute_type: DataType::Unset,
                attributes,
            })
            .collect(),
        ..Default::default()
    }
}
