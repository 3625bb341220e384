//! The exported ABI of plugins made with the SDK, over dlopen.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, PluginType, Severity, engine_id};
use dnn_assay_graph::wire::{Generation, write_graph};
use dnn_assay_graph::{Graph, PointwiseMode};
use host::{Failure, Host, exported, is_mapped, memory_note, pointwise, target_dir, to_floats};
use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

fn example(name: &str) -> PathBuf {
    target_dir().join("examples").join(format!("lib{name}.so"))
}

fn unruly() -> Host {
    Host::open(&example("unruly_plugin"))
}

fn copy(name: &str) -> Graph {
    Graph {
        name: name.to_owned(),
        ..pointwise(PointwiseMode::Identity, &[&[4]], &[4])
    }
}

fn bytes(graph: &Graph) -> Vec<u8> {
    write_graph(graph, Generation::Current).unwrap()
}

const SERIALIZATION: [&str; 3] = [
    "SerializeExecutionContextWithEngineId",
    "DestroySerializedExecutionContext",
    "CreateExecutionContextFromSerialized",
];

#[test]
fn exactly_the_abi_is_exported() {
    let mut absent = vec!["SerializeExecutionContext"];
    let all = host::abi_symbols_without(&absent);
    assert_eq!(exported(&example("unruly_plugin")), all);
    absent.push("ExecuteOpGraphWithOverrides");
    absent.extend(SERIALIZATION);
    let plain = host::abi_symbols_without(&absent);
    assert_eq!(plain.len(), 20);
    assert_eq!(exported(&example("minimal_plugin")), plain);
}

#[test]
fn the_memory_note_is_in_a_note_segment() {
    let note = memory_note(&example("minimal_plugin"));
    assert_eq!(note.as_deref(), Some("memory=host"));
}

#[test]
fn the_example_computes_in_every_float_type_and_layout() {
    let host = Host::open(&example("minimal_plugin"));
    assert_eq!(host.text("GetName"), "minimal");
    assert_eq!(host.text("GetApiVersion"), "1.4.0");
    assert_eq!(host.engines(), [engine_id("EXAMPLE_ABS_ENGINE")]);
    assert_eq!(
        host.engine_name(host.engines()[0]).unwrap(),
        "EXAMPLE_ABS_ENGINE"
    );
    let graph = pointwise(PointwiseMode::Abs, &[&[2, 2]], &[2, 2]);
    assert!(host.takes(&graph));
    let got = host.run(&graph, &[(1, &[-1.0, 2.0, -0.0, f32::NEG_INFINITY])]);
    assert_eq!(got[&9], [1.0, 2.0, 0.0, f32::INFINITY]);
    assert!(!host.takes(&pointwise(PointwiseMode::Neg, &[&[2]], &[2])));
}

#[test]
fn details_name_the_engine_and_are_given_back() {
    let host = unruly();
    let id = host.engines()[0];
    let details = host.details(id, &bytes(&copy(""))).unwrap();
    assert_eq!(
        (details.engine_id, details.name.as_str()),
        (id, "UNRULY_ENGINE")
    );
    let older = write_graph(&copy(""), Generation::Nov2025).unwrap();
    assert_eq!(host.details(id, &older).unwrap().engine_id, id);
    let failure = host.details(id + 1, &older).unwrap_err();
    assert_eq!(failure.0, PluginStatus::INVALID_VALUE);

    let destroy: f::DestroyData = host.function("DestroyEngineDetails");
    let mut foreign = ConstData::borrow(b"not yours");
    // SAFETY: the plugin must refuse what it has not handed out.
    let status = unsafe { destroy(host.handle, &mut foreign) };
    assert_eq!(status, PluginStatus::BAD_PARAM);
}

#[test]
fn null_arguments_are_refused() {
    let host = unruly();
    let h = host.handle;
    let bytes = bytes(&copy(""));
    let graph = ConstData::borrow(&bytes);
    let empty = ConstData::EMPTY;
    let (mut id, mut count, mut size) = (0i64, 0u32, 0usize);
    let mut out = null_mut();
    let bad = PluginStatus::BAD_PARAM;
    // SAFETY: every pointer is null or valid.
    unsafe {
        for name in ["GetName", "GetVersion", "GetApiVersion"] {
            assert_eq!(host.function::<f::GetText>(name)(null_mut()), bad, "{name}");
        }
        assert_eq!(host.function::<f::GetType>("GetType")(null_mut()), bad);
        host.function::<f::GetLastErrorString>("GetLastErrorString")(null_mut());
        let ids: f::GetAllEngineIds = host.function("GetAllEngineIds");
        assert_eq!(ids(&mut id, 1, null_mut()), bad);
        assert_eq!(ids(null_mut(), 1, &mut count), bad);
        assert_eq!(host.function::<f::Create>("Create")(null_mut()), bad);
        assert_eq!(host.function::<f::Destroy>("Destroy")(null_mut()), bad);
        assert_eq!(
            host.function::<f::SetStream>("SetStream")(null_mut(), null_mut()),
            bad
        );
        let applicable: f::GetApplicableEngineIds = host.function("GetApplicableEngineIds");
        assert_eq!(applicable(null_mut(), &graph, &mut id, 1, &mut count), bad);
        assert_eq!(applicable(h, null(), &mut id, 1, &mut count), bad);
        assert_eq!(applicable(h, &empty, &mut id, 1, &mut count), bad);
        assert_eq!(applicable(h, &graph, null_mut(), 1, &mut count), bad);
        assert_eq!(applicable(h, &graph, &mut id, 1, null_mut()), bad);
        let details: f::GetEngineDetails = host.function("GetEngineDetails");
        assert_eq!(details(h, host.engines()[0], &graph, null_mut()), bad);
        let destroy: f::DestroyData = host.function("DestroyEngineDetails");
        assert_eq!(destroy(h, null_mut()), bad);
        let workspace: f::GetWorkspaceSize = host.function("GetWorkspaceSize");
        assert_eq!(workspace(h, null(), &graph, &mut size), bad);
        let create: f::CreateExecutionContext = host.function("CreateExecutionContext");
        assert_eq!(create(h, null(), &graph, &mut out), bad);
        assert_eq!(create(h, &empty, &graph, null_mut()), bad);
        let execute: f::ExecuteOpGraph = host.function("ExecuteOpGraph");
        assert_eq!(execute(h, null_mut(), null_mut(), null(), 0), bad);
        let name: f::GetEngineName = host.function("GetEngineName");
        assert_eq!(name(host.engines()[0], null_mut()), bad);
    }
    assert!(
        host.last_error().contains("name is null"),
        "{}",
        host.last_error()
    );
}

#[test]
fn foreign_handles_and_destroyed_contexts_are_refused() {
    let host = unruly();
    let context = host
        .plan(host.engines()[0], &copy(""), Generation::Current)
        .unwrap();
    host.destroy_context(context).unwrap();
    let Failure(status, text) = host.destroy_context(context).unwrap_err();
    assert_eq!(status, PluginStatus::BAD_PARAM);
    assert!(text.contains("has been destroyed"), "{text}");
    let destroy: f::Destroy = host.function("Destroy");
    let mut not_a_handle = [0u64; 4];
    // SAFETY: the plugin must refuse a pointer that it has not handed out.
    let status = unsafe { destroy(not_a_handle.as_mut_ptr().cast()) };
    assert_eq!(status, PluginStatus::BAD_PARAM);
}

#[test]
fn counts_follow_the_contract() {
    let host = unruly();
    let (mut id, mut count) = (0, 7);
    let all: f::GetAllEngineIds = host.function("GetAllEngineIds");
    let applicable: f::GetApplicableEngineIds = host.function("GetApplicableEngineIds");
    let bytes = bytes(&copy(""));
    // SAFETY: all pointers are valid, or null where that asks for the count.
    unsafe {
        assert_eq!(all(&mut id, 0, &mut count), PluginStatus::SUCCESS);
        assert_eq!((id, count), (0, 0), "no room: none written");
        let graph = ConstData::borrow(&bytes);
        let status = applicable(host.handle, &graph, null_mut(), 0, &mut count);
        assert_eq!((status, count), (PluginStatus::SUCCESS, 1));
        let mut kind = PluginType::UNSPECIFIED;
        host.function::<f::GetType>("GetType")(&mut kind);
        assert_eq!(kind, PluginType::ENGINE);
    }
}

#[test]
fn panics_become_a_status_and_a_text() {
    let host = unruly();
    let id = host.engines()[0];
    let failure = host
        .applicable(&bytes(&copy("panic in supports")))
        .unwrap_err();
    assert_eq!(failure.0, PluginStatus::INTERNAL_ERROR);
    assert!(
        failure.1.contains("told to, by the graph's name"),
        "{}",
        failure.1
    );

    let context = host
        .plan(id, &copy("panic in execute"), Generation::Current)
        .unwrap();
    let mut memory = [0f32; 4];
    let buffers = [1, 9].map(|uid| DeviceBuffer {
        uid,
        ptr: memory.as_mut_ptr().cast(),
    });
    let failure = host.execute(context, null_mut(), &buffers).unwrap_err();
    assert_eq!(failure.0, PluginStatus::INTERNAL_ERROR);
    assert!(failure.1.contains("told to, after 42"), "{}", failure.1);
    host.destroy_context(context).unwrap();
}

#[test]
fn errors_of_engines_and_of_the_wire_arrive() {
    let host = unruly();
    let id = host.engines()[0];
    let failure = host
        .plan(id, &copy("refuse to plan"), Generation::Nov2025)
        .unwrap_err();
    assert_eq!(failure.0, PluginStatus::INTERNAL_ERROR);
    assert!(failure.1.contains("no plan today"), "{}", failure.1);
    let failure = host
        .plan(id + 1, &copy(""), Generation::Current)
        .unwrap_err();
    assert_eq!(failure.0, PluginStatus::INVALID_VALUE);
    let failure = host.applicable(&[0xFF; 64]).unwrap_err();
    assert_eq!(failure.0, PluginStatus::BAD_PARAM);
    let mut contradictory = copy("");
    contradictory.tensors[1].dims = vec![5];
    assert!(!host.takes(&contradictory));
    let failure = host
        .plan(id, &contradictory, Generation::Current)
        .unwrap_err();
    assert_eq!(failure.0, PluginStatus::BAD_PARAM);
}

#[test]
fn the_last_error_is_the_threads_own() {
    let host = unruly();
    host.applicable(&[0xFF; 64]).unwrap_err();
    let here = host.last_error();
    assert_ne!(here, "");
    let get: f::GetLastErrorString = host.function("GetLastErrorString");
    let there = std::thread::spawn(move || {
        let mut text: *const c_char = null();
        // SAFETY: the out argument is valid; the plugin outlives the thread.
        unsafe {
            get(&mut text);
            CStr::from_ptr(text).to_owned()
        }
    });
    assert_eq!(there.join().unwrap().to_str().unwrap(), "");
    assert_eq!(host.last_error(), here);
}

#[test]
fn a_missing_buffer_or_workspace_is_refused() {
    let host = unruly();
    let id = host.engines()[0];
    let context = host.plan(id, &copy(""), Generation::Current).unwrap();
    let mut memory = [0f32; 4];
    let one = [DeviceBuffer {
        uid: 1,
        ptr: memory.as_mut_ptr().cast(),
    }];
    let failure = host.execute(context, null_mut(), &one).unwrap_err();
    assert_eq!(failure.0, PluginStatus::BAD_PARAM);
    assert!(failure.1.contains("tensor 9"), "{}", failure.1);
    host.destroy_context(context).unwrap();

    let context = host
        .plan(id, &copy("workspace"), Generation::Current)
        .unwrap();
    assert_eq!(host.workspace(context), 64);
    let failure = host.execute(context, null_mut(), &one).unwrap_err();
    assert!(failure.1.contains("workspace is null"), "{}", failure.1);
    host.destroy_context(context).unwrap();
}

#[test]
fn log_lines_reach_the_callback() {
    static LINES: Mutex<Vec<(Severity, String)>> = Mutex::new(Vec::new());
    unsafe extern "C-unwind" fn record(severity: Severity, text: *const c_char) {
        // SAFETY: the plugin passes a NUL-terminated text.
        let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
        LINES.lock().unwrap().push((severity, text));
    }
    let host = unruly();
    let set: f::SetLoggingCallback = host.function("SetLoggingCallback");
    let level: f::SetLogLevel = host.function("SetLogLevel");
    let id = host.engines()[0];
    let plan = || {
        let context = host.plan(id, &copy("log"), Generation::Current).unwrap();
        host.destroy_context(context).unwrap();
        let mut lines = std::mem::take(&mut *LINES.lock().unwrap());
        // Other tests share the library, and with it the callback.
        lines.retain(|(_, text)| text == "about to plan");
        !lines.is_empty()
    };
    // SAFETY: the callback lives as long as the process.
    unsafe {
        assert_eq!(set(Some(record)), PluginStatus::SUCCESS);
        assert!(plan());
        assert_eq!(level(Severity::OFF), PluginStatus::SUCCESS);
        assert!(!plan());
        assert_eq!(level(Severity(9)), PluginStatus::INVALID_VALUE);
        assert_eq!(level(Severity::INFO), PluginStatus::SUCCESS);
        assert_eq!(set(None), PluginStatus::SUCCESS);
        assert!(!plan());
    }
}

#[test]
fn overridden_shapes_are_planned_anew() {
    let host = unruly();
    let context = host
        .plan(host.engines()[0], &copy(""), Generation::Current)
        .unwrap();
    let execute: f::ExecuteOpGraphWithOverrides = host.function("ExecuteOpGraphWithOverrides");
    let (mut x, mut y) = ([1f32, 2.0, 3.0], [0f32; 5]);
    let buffers = [(1, x.as_mut_ptr()), (9, y.as_mut_ptr())].map(|(uid, ptr)| DeviceBuffer {
        uid,
        ptr: ptr.cast(),
    });
    let (dims, packed, gaps) = ([3i64], [1i64], [2i64]);
    let run = |uids: [i64; 2]| {
        // SAFETY: all arrays are as long as they are said to be.
        unsafe {
            execute(
                host.handle,
                context,
                null_mut(),
                buffers.as_ptr(),
                2,
                2,
                uids.as_ptr(),
                [1u32, 1].as_ptr(),
                [dims.as_ptr(), dims.as_ptr()].as_ptr(),
                [packed.as_ptr(), gaps.as_ptr()].as_ptr(),
            )
        }
    };
    assert_eq!(run([1, 9]), PluginStatus::SUCCESS, "{}", host.last_error());
    assert_eq!(y, [1.0, 0.0, 2.0, 0.0, 3.0]);
    assert_eq!(run([1, 8]), PluginStatus::BAD_PARAM);
    host.destroy_context(context).unwrap();
}

#[test]
fn contexts_survive_as_bytes() {
    let host = unruly();
    let id = host.engines()[0];
    let context = host.plan(id, &copy(""), Generation::Nov2025).unwrap();
    let save: f::SerializeExecutionContextWithEngineId =
        host.function("SerializeExecutionContextWithEngineId");
    let free: f::DestroyData = host.function("DestroySerializedExecutionContext");
    let load: f::CreateExecutionContextFromSerialized =
        host.function("CreateExecutionContextFromSerialized");
    let (mut data, mut restored) = (ConstData::EMPTY, null_mut());
    let mut saved;
    // SAFETY: out arguments are valid, and the plugin owns the bytes until they are freed.
    unsafe {
        let wrong = save(host.handle, id + 1, context, &mut data);
        assert_eq!(wrong, PluginStatus::INVALID_VALUE);
        host.checked(save(host.handle, id, context, &mut data))
            .unwrap();
        saved = std::slice::from_raw_parts(data.ptr.cast::<u8>(), data.size).to_vec();
        host.checked(free(host.handle, &mut data)).unwrap();
        host.destroy_context(context).unwrap();
        host.checked(load(host.handle, &ConstData::borrow(&saved), &mut restored))
            .unwrap();
    }
    let (mut x, mut y) = ([1f32, 2.0, 3.0, 4.0], vec![0u8; 16]);
    let buffers = [(1, x.as_mut_ptr().cast()), (9, y.as_mut_ptr().cast())];
    let buffers = buffers.map(|(uid, ptr)| DeviceBuffer { uid, ptr });
    host.execute(restored, null_mut(), &buffers).unwrap();
    assert_eq!(to_floats(&y), x);
    host.destroy_context(restored).unwrap();
    for cut in 0..saved.len() {
        saved.truncate(saved.len() - 1);
        // SAFETY: out argument and bytes are valid, whatever they say.
        let status = unsafe { load(host.handle, &ConstData::borrow(&saved), &mut restored) };
        assert_ne!(status, PluginStatus::SUCCESS, "{cut} bytes cut off");
    }
}

/// Opens a copy of its own, that no other test of this process holds open, and sees it go.
fn check_unload(name: &str, use_it: impl FnOnce(&Host)) {
    let private = target_dir().join(format!("{name}-{}.so", std::process::id()));
    std::fs::copy(example("unruly_plugin"), &private).unwrap();
    let host = Host::open(&private);
    use_it(&host);
    assert!(is_mapped(&private));
    drop(host);
    let mapped = is_mapped(&private);
    std::fs::remove_file(&private).unwrap();
    assert!(!mapped, "something keeps the library");
}

#[test]
fn the_library_goes_away_when_closed() {
    check_unload("unload", |host| {
        host.details(host.engines()[0], &bytes(&copy(""))).unwrap();
        host.run(&copy(""), &[(1, &[1.0, 2.0, 3.0, 4.0])]);
    });
}

#[test]
fn the_library_goes_away_after_an_error_too() {
    check_unload("unload-error", |host| {
        host.applicable(&[0xFF; 64]).unwrap_err();
    });
}

#[test]
fn the_library_goes_away_after_a_panic_too() {
    check_unload("unload-panic", |host| {
        host.applicable(&bytes(&copy("panic in supports")))
            .unwrap_err();
    });
}
