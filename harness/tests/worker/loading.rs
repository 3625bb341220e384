//! Everything that keeps a plugin from being loaded, and what a good one says of itself.

use std::fs;

use dnn_assay::worker::{EngineName, LoadFailure, LoadMode, Shutdown, Worker};
use dnn_assay_abi::{ApiVersion, PluginStatus};
use libtest_mimic::Trial;

use crate::mock::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("load::a_good_plugin", good),
        trial("load::deepbind", deepbind),
        trial("load::missing_file", missing_file),
        trial("load::not_a_library", not_a_library),
        trial("load::no_symbols", no_symbols),
        trial("load::one_symbol_missing", one_symbol_missing),
        trial("load::without_optional_symbols", without_optional),
        trial("load::wrong_type", wrong_type),
        trial("load::engine_lists", engine_lists),
        trial("load::api_versions", api_versions),
        trial("load::null_answers", null_answers),
        trial("load::failing_calls", failing_calls),
        trial("load::create", create),
        trial("load::engine_names", engine_names),
        trial("load::environment", environment),
    ]
}

fn good() {
    let mut worker = Worker::spawn(&config(&PLUGIN, "")).unwrap();
    assert!(worker.info().is_none());
    let info = worker.load().unwrap();
    assert_eq!(info.name, "mock plugin");
    assert_eq!(info.version, "0.1");
    assert_eq!(info.api_version_text.as_deref(), Some("1.4.0"));
    assert_eq!(info.api_version(), ApiVersion::new(1, 4, 0));
    assert!(!info.needs_major_zero_shim());
    let ids: Vec<_> = info.engines.iter().map(|engine| engine.id).collect();
    assert_eq!(ids, engine_ids());
    assert_eq!(info.engines[1].display_name(), "MOCK_ENGINE_B");
    assert!(info.engines.iter().all(|e| e.dropped_by_host().is_none()));
    assert!(info.exports("hipdnnEnginePluginGetEngineName"));
    assert!(!info.exports("hipdnnEnginePluginExecuteOpGraphWithOverrides"));
    assert_eq!(worker.info(), Some(&info));
    assert_eq!(worker.shutdown(), Shutdown::Clean);
}

fn deepbind() {
    let mut config = config(&PLUGIN, "");
    config.load_mode = LoadMode::Deepbind;
    assert!(load_of(&config).is_ok());
}

fn missing_file() {
    let failure = load_of(&config("/nowhere/plugin.so".as_ref(), "")).unwrap_err();
    assert!(matches!(failure, LoadFailure::FileMissing { .. }));
    assert_eq!(
        failure.to_string(),
        "plugin file does not exist: /nowhere/plugin.so"
    );
}

fn not_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.so");
    fs::write(&path, "this is text").unwrap();
    let LoadFailure::Open { text, .. } = load_of(&config(&path, "")).unwrap_err() else {
        panic!("opened");
    };
    assert!(
        text.contains("file too short") || text.contains("invalid ELF header"),
        "{text}"
    );
}

fn no_symbols() {
    let path = build(
        "empty.so",
        "cc",
        &["-DEXPORT=static __attribute__((unused))"],
    );
    let failure = load_of(&config(&path, "")).unwrap_err();
    let LoadFailure::MissingSymbols { first, count, .. } = &failure else {
        panic!("{failure}");
    };
    assert_eq!((first.as_str(), *count), ("hipdnnPluginGetName", 16));
}

fn one_symbol_missing() {
    let path = build("no-error.so", "cc", &["-DWITHOUT_LAST_ERROR"]);
    let failure = load_of(&config(&path, "")).unwrap_err();
    let LoadFailure::MissingSymbols { first, count, text } = &failure else {
        panic!("{failure}");
    };
    assert_eq!(
        (first.as_str(), *count),
        ("hipdnnPluginGetLastErrorString", 1)
    );
    assert!(
        text.contains("undefined symbol: hipdnnPluginGetLastErrorString"),
        "{text}"
    );
    assert!(
        failure
            .to_string()
            .contains("1 of 16 mandatory symbols missing")
    );
}

fn without_optional() {
    let path = build("plain.so", "cc", &["-DWITHOUT_OPTIONAL"]);
    let info = load_of(&config(&path, "")).unwrap();
    assert_eq!(info.api_version_text, None);
    assert_eq!(info.api_version(), ApiVersion::new(1, 0, 0));
    assert!(info.optional_symbols.is_empty());
    assert_eq!(info.engines[0].name, EngineName::NotExported);
}

fn wrong_type() {
    assert_eq!(
        load_failure("heuristic"),
        LoadFailure::WrongType {
            kind: 2,
            heuristic: true
        }
    );
    assert_eq!(
        load_failure("type-unspecified"),
        LoadFailure::WrongType {
            kind: 0,
            heuristic: false
        }
    );
    let path = build("heuristic.so", "cc", &["-DHEURISTIC_SYMBOLS"]);
    assert_eq!(
        load_of(&config(&path, "type-unspecified")).unwrap_err(),
        LoadFailure::WrongType {
            kind: 0,
            heuristic: true
        }
    );
}

fn engine_lists() {
    assert_eq!(load_failure("zero-engines"), LoadFailure::NoEngines);
    let id = engine_ids()[0];
    assert_eq!(
        load_failure("duplicate-ids"),
        LoadFailure::DuplicateIds { id }
    );
    let differ = LoadFailure::CountsDiffer {
        first: 2,
        second: 1,
    };
    assert_eq!(load_failure("counts-differ"), differ);
    assert!(matches!(
        load_failure("ids-overflow"),
        LoadFailure::IdsOverflow { max: 2 }
    ));
    assert!(matches!(
        load_failure("many-engines"),
        LoadFailure::TooManyEngines { .. }
    ));
}

fn api_versions() {
    let LoadFailure::ApiVersionUnparsable { version, .. } = load_failure("api-unparsable") else {
        panic!("parsed");
    };
    assert_eq!(version, "one.two");
    assert!(matches!(
        load_failure("api-major-2"),
        LoadFailure::ApiMajor { .. }
    ));
    let info = load_of(&config(&PLUGIN, "api-major-0")).unwrap();
    assert!(info.needs_major_zero_shim());
}

fn null_answers() {
    for (fault, symbol) in [
        ("null-name", "hipdnnPluginGetName"),
        ("null-version", "hipdnnPluginGetVersion"),
        ("api-null", "hipdnnPluginGetApiVersion"),
    ] {
        let call = symbol.to_owned();
        assert_eq!(load_failure(fault), LoadFailure::Null { call }, "{fault}");
    }
}

fn failing_calls() {
    let failure = load_failure("name-fails");
    assert_eq!(
        failure.to_string(),
        "Failed to get plugin name. Status: HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR(3), Error: mock: no name today"
    );
    assert!(!failure.is_after_load());
}

fn create() {
    let mut worker = Worker::spawn(&config(&PLUGIN, "create-fails")).unwrap();
    let failure = worker.load().unwrap_err();
    assert_eq!(
        failure,
        LoadFailure::CreateFailed {
            status: PluginStatus::ALLOC_FAILED.0,
            text: "mock: no device".to_owned()
        }
    );
    assert!(failure.is_after_load());
    assert_eq!(worker.info().unwrap().engines.len(), 2);
    assert_eq!(worker.shutdown(), Shutdown::Clean);

    let failure = load_failure("null-handle");
    assert_eq!(failure, LoadFailure::NullHandle);
    assert!(failure.is_after_load());
}

fn engine_names() {
    let first = |fault| load_of(&config(&PLUGIN, fault)).unwrap().engines.remove(0);
    let wrong = first("engine-name-wrong");
    assert!(wrong.dropped_by_host().unwrap().contains("ANOTHER_NAME"));
    assert_eq!(first("engine-name-null").name, EngineName::Null);
    assert_eq!(first("engine-name-declined").name, EngineName::Declined);
    assert_eq!(first("engine-name-declined").dropped_by_host(), None);
    let failed = first("engine-name-fails");
    assert!(
        failed
            .dropped_by_host()
            .unwrap()
            .contains("mock: no engine name")
    );
}

/// Variables and paths act on the worker; caches lie under the scratch folder.
fn environment() {
    let mut config = config(&PLUGIN, "");
    config.clean_env = true;
    config.lib_path.push("/opt/one".into());
    config.lib_path.push("/opt/two".into());
    let worker = start(&config);
    let environment = fs::read(format!("/proc/{}/environ", worker.process_id())).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let get = |key: &str| {
        let prefix = format!("{key}=");
        let mut lines = environment.split('\0');
        lines.find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
    };
    assert_eq!(get("LD_LIBRARY_PATH").as_deref(), Some("/opt/one:/opt/two"));
    assert_eq!(get("CARGO_MANIFEST_DIR"), None);
    for variable in [
        "HOME",
        "XDG_CACHE_HOME",
        "MIOPEN_USER_DB_PATH",
        "MIOPEN_CUSTOM_CACHE_DIR",
        "HIPDNN_CACHE_DIR",
    ] {
        let folder = get(variable).unwrap();
        assert!(
            folder.starts_with(config.scratch.to_str().unwrap()),
            "{variable}={folder}"
        );
    }
}
