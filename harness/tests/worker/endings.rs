//! Plugins that end, hang or drown their process, in every function.

use std::time::{Duration, Instant};

use dnn_assay::worker::{CaseResult, Exit, LoadFailure, Phase, Shutdown, Stopped, Until, Worker};
use libtest_mimic::Trial;

use crate::mock::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("end::segfault_in_each_function", segfaults),
        trial("end::hang_in_each_phase", hangs),
        trial("end::hang_that_ignores_sigterm", stubborn),
        trial("end::exit_abort_kill", exits),
        trial("end::throw_in_each_function", throws),
        trial("end::endless_output", floods),
        trial("end::chatter_is_no_flood", chatter),
        trial("end::stopped_workers_say_so_again", again),
        trial("end::scribbled_socket", scribbled),
        trial("end::trouble_at_exit", at_exit),
        trial("end::left_behind_processes_are_ended", left_behind),
        trial("end::a_busy_parent_is_no_timeout", busy_parent),
        trial("end::workers_die_with_their_handle", dropped),
        trial("end::wild_details", wild_details),
        trial("end::wrapped_workers_have_no_limits", wrapped),
        trial("end::worker_that_does_not_come_up", silent),
    ]
}

const LOAD_CALLS: &[(&str, Phase)] = &[
    ("constructor", Phase::Load),
    ("GetName", Phase::Load),
    ("GetVersion", Phase::Load),
    ("GetType", Phase::Load),
    ("GetApiVersion", Phase::Load),
    ("SetLoggingCallback", Phase::Load),
    ("SetLogLevel", Phase::Load),
    ("GetAllEngineIds", Phase::Load),
    ("GetEngineName", Phase::Load),
    ("Create", Phase::Create),
];

const CASE_CALLS: &[(&str, Phase, Option<Until>)] = &[
    ("GetApplicableEngineIds", Phase::Applicable, None),
    ("GetEngineDetails", Phase::Details, Some(Until::Applicable)),
    (
        "GetWorkspaceSize",
        Phase::Workspace,
        Some(Until::Applicable),
    ),
    (
        "CreateExecutionContext",
        Phase::Plan,
        Some(Until::Applicable),
    ),
    (
        "GetWorkspaceSizeFromExecutionContext",
        Phase::Plan,
        Some(Until::Applicable),
    ),
    ("ExecuteOpGraph", Phase::Execute, Some(Until::Planned)),
    (
        "DestroyExecutionContext",
        Phase::Destroy,
        Some(Until::Executed),
    ),
    (
        "DestroyEngineDetails",
        Phase::Destroy,
        Some(Until::Executed),
    ),
];

fn segfaults() {
    for (function, phase) in LOAD_CALLS {
        let failure = load_failure(&format!("segv:{function}"));
        let LoadFailure::Stopped(Stopped::Crash(crash)) = failure else {
            panic!("{function}: {failure:?}");
        };
        assert_eq!(
            (crash.exit, crash.phase),
            (Exit::Signal(11), *phase),
            "{function}"
        );
        assert_eq!(crash.guard, None);
    }
    for (function, phase, depth) in CASE_CALLS {
        let outcome = run_fault(&format!("segv:{function}"));
        assert_eq!(outcome.depth, *depth, "{function}");
        let crash = crash(outcome.result);
        assert_eq!(
            (crash.exit, crash.phase),
            (Exit::Signal(11), *phase),
            "{function}"
        );
        assert!(crash.to_string().contains("SIGSEGV"), "{crash}");
    }
    // The function that is asked for the text of a failure.
    let mut worker = Worker::spawn(&config(&PLUGIN, "segv:GetLastErrorString")).unwrap();
    assert!(worker.load().is_ok());
}

fn hangs() {
    for (function, phase) in [
        ("constructor", Phase::Load),
        ("GetName", Phase::Load),
        ("Create", Phase::Create),
    ] {
        let mut config = hurried(&format!("hang:{function}"));
        let mut worker = Worker::spawn(&config).unwrap();
        drop(worker);
        config.limits.load = Duration::from_millis(1500);
        worker = Worker::spawn(&config).unwrap();
        let expected = Stopped::Timeout {
            phase,
            abandoned: false,
        };
        assert_eq!(
            worker.load(),
            Err(LoadFailure::Stopped(expected)),
            "{function}"
        );
    }
    for (function, phase, depth) in CASE_CALLS {
        let mut worker = start(&hurried(&format!("hang:{function}")));
        let outcome = run(&mut worker);
        let expected = CaseResult::Timeout {
            phase: *phase,
            abandoned: false,
        };
        assert_eq!(
            (outcome.result, outcome.depth),
            (expected, *depth),
            "{function}"
        );
    }
}

fn stubborn() {
    let mut worker = start(&hurried("hang-ignoring-term:ExecuteOpGraph"));
    let expected = CaseResult::Timeout {
        phase: Phase::Execute,
        abandoned: false,
    };
    assert_eq!(run(&mut worker).result, expected);
}

fn exits() {
    for (kind, exit) in [
        ("exit", Exit::Code(0)),
        ("exit-code", Exit::Code(42)),
        ("abort", Exit::Signal(6)),
        ("kill", Exit::Signal(9)),
    ] {
        let crash = crash(run_fault(&format!("{kind}:ExecuteOpGraph")).result);
        assert_eq!((crash.exit, crash.phase), (exit, Phase::Execute), "{kind}");
        assert_eq!(
            crash.stderr.contains("mock: about to abort"),
            kind == "abort"
        );
    }
    let failure = load_failure("exit:constructor");
    let LoadFailure::Stopped(Stopped::Crash(crash)) = failure else {
        panic!("{failure:?}");
    };
    assert_eq!(crash.exit, Exit::Code(0));
}

fn throws() {
    for (function, phase, _) in CASE_CALLS {
        let fault = format!("throw:{function}");
        let outcome = run(&mut start(&config(&THROWING, &fault)));
        let crash = crash(outcome.result);
        assert_eq!(
            (crash.exit, crash.phase),
            (Exit::Signal(6), *phase),
            "{function}"
        );
        assert!(
            crash.stderr.contains("mock: thrown through the C ABI"),
            "{}",
            crash.stderr
        );
    }
    let failure = load_of(&config(&THROWING, "throw:GetType")).unwrap_err();
    assert!(
        matches!(failure, LoadFailure::Stopped(Stopped::Crash(_))),
        "{failure:?}"
    );
}

fn floods() {
    for (function, phase) in [
        ("ExecuteOpGraph", Phase::Execute),
        ("GetApplicableEngineIds", Phase::Applicable),
    ] {
        let mut config = config(&PLUGIN, &format!("flood:{function}"));
        config.output_cap = 1 << 20;
        let outcome = run(&mut start(&config));
        assert_eq!(
            outcome.result,
            CaseResult::Flood {
                phase,
                limit: 1 << 20
            }
        );
    }
}

fn chatter() {
    let mut worker = loaded("chatter:ExecuteOpGraph");
    for _ in 0..3 {
        let outcome = run(&mut worker);
        assert_eq!(outcome.result, CaseResult::Ok);
    }
}

fn again() {
    let mut worker = loaded("abort:ExecuteOpGraph");
    let first = run(&mut worker);
    assert!(first.result.needs_new_worker());
    let second = run(&mut worker);
    assert_eq!(second.result, first.result);
    assert!(matches!(
        worker.applicable(b""),
        dnn_assay::worker::Reply::Stopped(_)
    ));
    assert!(matches!(
        worker.shutdown(),
        Shutdown::Stopped(Stopped::Crash(_))
    ));
}

fn scribbled() {
    let outcome = run_fault("scribble:ExecuteOpGraph");
    assert!(
        matches!(outcome.result, CaseResult::Broken(_)),
        "{:?}",
        outcome.result
    );
}

fn at_exit() {
    for (fault, exit) in [
        ("segv:Destroy", Exit::Signal(11)),
        ("segv:destructor", Exit::Signal(11)),
    ] {
        let mut worker = loaded(fault);
        assert_eq!(run(&mut worker).result, CaseResult::Ok);
        let Shutdown::Stopped(Stopped::Crash(crash)) = worker.shutdown() else {
            panic!("{fault}: clean");
        };
        assert_eq!((crash.exit, crash.phase), (exit, Phase::Exit), "{fault}");
    }
}

fn left_behind() {
    let began = Instant::now();
    let mut worker = loaded("fork:ExecuteOpGraph");
    assert_eq!(run(&mut worker).result, CaseResult::Ok);
    let children = format!("/proc/{0}/task", worker.process_id());
    let children: Vec<String> = std::fs::read_dir(children)
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(children.len(), 1);
    assert_eq!(worker.shutdown(), Shutdown::Clean);
    let stat = format!("/proc/{}/stat", children[0]);
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the fork lives on"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The worker's clock counts, not the parent's attention.
fn busy_parent() {
    let mut worker = start(&hurried(""));
    prepare(&mut worker, 64, dnn_assay_device::Placement::End);
    worker.begin(request(64));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(worker.finish().result, CaseResult::Ok);
}

fn dropped() {
    let mut worker = loaded("hang:ExecuteOpGraph");
    prepare(&mut worker, 64, dnn_assay_device::Placement::End);
    worker.begin(request(64));
    let process = format!("/proc/{}", worker.process_id());
    assert!(std::fs::exists(&process).unwrap());
    drop(worker);
    assert!(!std::fs::exists(&process).unwrap());
}

fn wild_details() {
    let crash = crash(run_fault("details-wild").result);
    assert_eq!(
        (crash.exit, crash.phase),
        (Exit::Signal(11), Phase::Details)
    );
}

/// A wrapper's words are its own; the worker is found all the same, and nothing hurries it.
fn wrapped() {
    let mut config = hurried("");
    config.limits.load = Duration::from_millis(1);
    config.wrap = Some("env WRAPPED=yes nice -n 1".to_owned());
    let mut worker = start(&config);
    let environment = std::fs::read(format!("/proc/{}/environ", worker.process_id())).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains("WRAPPED=yes"));
    assert_eq!(run(&mut worker).result, CaseResult::Ok);
    assert_eq!(worker.shutdown(), Shutdown::Clean);
}

fn silent() {
    let mut config = hurried("");
    config.wrap = Some("false".to_owned());
    let error = Worker::spawn(&config).unwrap_err().to_string();
    assert!(
        error.contains("did not come up") && error.contains("exit code 1"),
        "{error}"
    );
}
