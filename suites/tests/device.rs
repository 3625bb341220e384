//! The device path without a device: the gfx942 plugin on the mock HIP runtime, whose faults are
//! asked for by variables. Each trial is one misfortune and what must come of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dnn_assay::cli;
use dnn_assay::exit::Exit;
use dnn_assay::journal::{self, CaseEnd, InfraKind, Journal};
use dnn_assay::plan::built_in_file;
use dnn_assay::verdict::{FailKind, NotRunReason, Phase, SkipReason, Verdict};
use libtest_mimic::{Arguments, Failed, Trial};

/// Cases of one launch or two each.
const CASES: [&str; 4] = [
    "pointwise.add/f32/nchw/n2-c3-i5x7",
    "pointwise.relu_fwd/f16/nhwc/n2-c3-i5x7",
    "pointwise.mul/bf16/nchw/n2-c3-i5x7",
    "pointwise.sub/f32/nhwc/n2-c3-i5x7",
];

fn main() -> ExitCode {
    dnn_assay::worker::worker_entry();
    let plugin = built_in_file("libdnn_assay_gfx942_plugin.so").ok();
    let trials = TRIALS.iter().map(|&(name, body)| {
        let trial = Trial::test(name, move || {
            body();
            Ok::<(), Failed>(())
        });
        match plugin.as_deref().is_some_and(has_kernels) {
            true => trial,
            false => trial
                .with_kind("the gfx942 plugin was built without kernels: no clang for AMDGPU here")
                .with_ignored_flag(true),
        }
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

const TRIALS: &[(&str, fn())] = &[
    (
        "a_device_of_its_own_for_each_of_eight_workers",
        eight_devices,
    ),
    (
        "sixty_four_devices_have_sixty_four_workers",
        sixty_four_devices,
    ),
    (
        "inherited_lists_of_visible_devices_choose_and_order",
        visible_lists,
    ),
    (
        "without_a_device_cases_are_skipped_and_the_journal_says_so",
        no_device,
    ),
    ("memory_that_is_not_there_skips_the_case", out_of_memory),
    (
        "a_case_that_does_not_fit_says_what_it_needs_and_what_there_is",
        too_small,
    ),
    ("a_failing_launch_is_its_cases_failure", failing_launch),
    ("a_hang_costs_its_case_where_the_device_is_well", hang),
    (
        "a_sticky_error_costs_its_case_where_the_device_is_well",
        sticky,
    ),
    ("a_device_that_is_lost_ends_the_run", lost_device),
    ("slow_copies_change_nothing", slow_copies),
    ("work_on_the_default_stream_is_found", default_stream),
    (
        "work_on_a_stream_that_nobody_waits_for_is_found",
        unjoined_stream,
    ),
    ("an_error_that_nobody_looks_at_is_found", lost_error),
    ("an_execution_that_waits_is_legal", waiting),
    ("streams_that_hold_each_other_up_are_noted", one_stream),
    ("memory_that_each_case_keeps_is_a_leak", leak),
    (
        "a_failure_that_another_device_does_not_have_makes_the_device_suspect",
        suspect,
    ),
    ("other_users_and_moved_counters_are_told", health),
    (
        "kernels_are_compiled_at_run_time_and_kept",
        run_time_compiler,
    ),
    ("without_any_kernels_everything_is_declined", no_kernels),
    ("the_mutants_of_streams_are_caught", mutants),
    (
        "writes_where_none_belong_are_found_on_the_device_as_on_copies",
        stray_writes,
    ),
    (
        "elements_that_nobody_wrote_are_found_on_the_device_as_on_copies",
        short_grids,
    ),
    ("checking_copies_is_said_once", copies_are_said),
    (
        "host_kernels_of_another_source_are_refused_in_words",
        other_source,
    ),
    ("a_device_says_where_its_guards_are_checked", device_words),
];

/// Whether the build had a compiler: the object's symbols are in the file.
fn has_kernels(path: &Path) -> bool {
    let symbol = b"dnn_pointwise.kd";
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(symbol.len()).any(|w| w == symbol))
}

fn plugin() -> PathBuf {
    built_in_file("libdnn_assay_gfx942_plugin.so").unwrap()
}

/// A run of cases with variables for its workers.
fn run(cases: &[String], variables: &[&str], more: &[&str]) -> (Exit, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let mut words: Vec<String> = ["dnn-assay", "run"].map(str::to_owned).to_vec();
    words.push(plugin().display().to_string());
    words.extend(["--device", "mock-hip", "--plain", "--out"].map(str::to_owned));
    words.push(folder.path().display().to_string());
    for case in cases {
        words.extend(["--case".to_owned(), case.clone()]);
    }
    for variable in variables {
        let variable = match variable.starts_with("DNN_") || variable.contains("VISIBLE") {
            true => (*variable).to_owned(),
            false => format!("DNN_ASSAY_MOCK_HIP_{variable}"),
        };
        words.extend(["--env".to_owned(), variable]);
    }
    words.extend(more.iter().map(|&word| word.to_owned()));
    let exit = cli::main(words);
    let journal = journal::read(&folder.path().join("journal.jsonl")).unwrap();
    (exit, journal)
}

fn cases() -> Vec<String> {
    CASES.map(str::to_owned).to_vec()
}

/// Small cases of different sizes.
fn many(count: usize) -> Vec<String> {
    (1..=count)
        .map(|n| format!("pointwise.add/f32/nchw/n{n}-c3-i5x7"))
        .collect()
}

/// The verdicts of the standard cases in order, on one worker.
fn verdicts(variables: &[&str]) -> Vec<Verdict> {
    let (_, journal) = run(&cases(), variables, &["--timeout", "execute=2s"]);
    in_order(&journal)
}

fn in_order(journal: &Journal) -> Vec<Verdict> {
    journal.ends.iter().map(|end| end.verdict.clone()).collect()
}

fn all(journal: &Journal, expected: &Verdict) {
    for end in &journal.ends {
        assert_eq!(&end.verdict, expected, "{}: {:?}", end.case, end.reason);
    }
}

fn infra(journal: &Journal, kind: InfraKind) -> Vec<&str> {
    let records = journal.infra.iter().filter(|infra| infra.kind == kind);
    records.map(|infra| infra.message.as_str()).collect()
}

fn reason(end: &CaseEnd) -> &str {
    end.reason.as_deref().unwrap_or_default()
}

fn devices_used(journal: &Journal) -> BTreeSet<u32> {
    journal
        .starts
        .iter()
        .filter_map(|start| start.device)
        .collect()
}

fn eight_devices() {
    let (exit, journal) = run(&many(24), &["DEVICES=8"], &[]);
    assert_eq!(exit, Exit::Ok);
    all(&journal, &Verdict::Pass);
    let used = devices_used(&journal);
    assert!(
        used.len() > 1 && used.iter().all(|device| *device < 8),
        "{used:?}"
    );
    // A worker has one device, and a device one worker.
    let pairs: BTreeSet<(u32, u32)> = journal
        .starts
        .iter()
        .filter_map(|start| Some((start.device?, start.worker?)))
        .collect();
    let workers: BTreeSet<u32> = pairs.iter().map(|pair| pair.1).collect();
    assert_eq!(pairs.len(), workers.len());
    assert_eq!(
        pairs.len(),
        pairs.iter().map(|p| p.0).collect::<BTreeSet<_>>().len()
    );
}

fn sixty_four_devices() {
    let (exit, journal) = run(&many(64), &["DEVICES=64"], &[]);
    assert_eq!(exit, Exit::Ok);
    all(&journal, &Verdict::Pass);
    let used = devices_used(&journal);
    assert!(used.len() > 8, "{used:?}");
}

fn visible_lists() {
    let lists = ["ROCR_VISIBLE_DEVICES=4,5,6,7", "HIP_VISIBLE_DEVICES=3,1"];
    let variables = [&["DEVICES=8"][..], &lists, &["GPU_DEVICE_ORDINAL=7"]].concat();
    let (exit, journal) = run(&many(12), &variables[..3], &[]);
    assert_eq!(exit, Exit::Ok);
    all(&journal, &Verdict::Pass);
    assert!(devices_used(&journal).iter().all(|device| *device < 2));
    // The fourth of those that ROCr leaves is the machine's seventh.
    let device = journal.start.unwrap().device.unwrap();
    assert_eq!(device.pci.as_deref(), Some("0000:07:00.0"));
    assert_eq!(device.kind.as_deref(), Some("mock-hip"));
}

fn no_device() {
    let (exit, journal) = run(&cases(), &["DEVICES=0"], &[]);
    assert_eq!(exit, Exit::NothingVerified);
    all(&journal, &Verdict::Skipped(SkipReason::NoDevice));
    assert!(reason(&journal.ends[0]).contains("no ROCm-capable device"));
    let device = journal.start.unwrap().device.unwrap();
    assert_eq!(device.kind.as_deref(), Some("none"));
}

fn out_of_memory() {
    let (_, journal) = run(&cases(), &["OOM_AT=2"], &[]);
    // Only that allocation failed.
    let (skipped, pass) = (Verdict::Skipped(SkipReason::Memory), || Verdict::Pass);
    assert_eq!(in_order(&journal), [skipped, pass(), pass(), pass()]);
    let text = reason(&journal.ends[0]);
    assert!(text.contains("out of memory"), "{text}");
}

fn too_small() {
    let cases = [
        "pointwise.add/f32/nchw/n2-c3-i5x7",
        "pointwise.add/f32/nchw/n8-c64-i56x56",
    ];
    let (_, journal) = run(&cases.map(str::to_owned), &["MEMORY_MB=4"], &[]);
    let skipped = Verdict::Skipped(SkipReason::Memory);
    assert_eq!(in_order(&journal), [Verdict::Pass, skipped]);
    let text = reason(&journal.ends[1]);
    assert!(
        text.contains("needs 19") && text.contains("has 4"),
        "{text}"
    );
}

fn failing_launch() {
    let (exit, journal) = run(&cases(), &["FAIL_LAUNCH=2"], &[]);
    let failed = Verdict::Fail(FailKind::Status);
    let pass = Verdict::Pass;
    assert_eq!(
        in_order(&journal),
        [pass.clone(), failed, pass.clone(), pass]
    );
    let text = reason(&journal.ends[1]);
    assert!(text.contains("unspecified launch failure"), "{text}");
    assert_eq!(exit, Exit::Failed);
}

fn hang() {
    let (exit, journal) = run(&cases(), &["HANG_LAUNCH=3"], &["--timeout", "execute=1s"]);
    let verdicts = in_order(&journal);
    assert_eq!(verdicts[2], Verdict::Timeout(Phase::Execute));
    assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Pass).count(), 3);
    assert!(infra(&journal, InfraKind::Worker)[0].contains("is well"));
    assert_eq!(exit, Exit::Failed);
}

fn sticky() {
    let (exit, journal) = run(&cases(), &["STICKY_AT=3"], &[]);
    let verdicts = in_order(&journal);
    assert_eq!(verdicts[2], Verdict::Fail(FailKind::Status));
    assert!(reason(&journal.ends[2]).contains("illegal memory access"));
    assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Pass).count(), 3);
    assert!(infra(&journal, InfraKind::Worker)[0].contains("is well"));
    assert_eq!(exit, Exit::Failed);
}

fn lost_device() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("LOST_FILE={}", folder.path().join("lost").display());
    let (exit, journal) = run(&cases(), &["STICKY_AT=2", &file], &[]);
    let lost = Verdict::NotRun(NotRunReason::DeviceLost);
    assert_eq!(
        in_order(&journal),
        [
            Verdict::Pass,
            Verdict::Fail(FailKind::Status),
            lost.clone(),
            lost
        ]
    );
    assert!(infra(&journal, InfraKind::DeviceLost)[0].contains("no ROCm-capable device"));
    assert_eq!(exit, Exit::Infrastructure);
}

fn slow_copies() {
    assert_eq!(verdicts(&["SLOW_COPY_MS=5"]), [const { Verdict::Pass }; 4]);
}

fn default_stream() {
    let (exit, journal) = run(&cases(), &["PLUGIN=default-stream"], &[]);
    all(&journal, &Verdict::Fail(FailKind::Abi));
    let text = reason(&journal.ends[0]);
    assert!(text.contains("runs on another stream"), "{text}");
    assert_eq!(exit, Exit::Failed);
}

fn unjoined_stream() {
    // Found while the stream is held, or by what was not written when the outputs were read.
    let found = [FailKind::Abi, FailKind::Unwritten, FailKind::NotFinite].map(Verdict::Fail);
    for verdict in verdicts(&["PLUGIN=unjoined-stream", "SLOW_KERNEL_MS=300"]) {
        assert!(found.contains(&verdict), "{verdict:?}");
    }
    // Quick work is done before the given stream comes to it.
    let (_, journal) = run(&cases(), &["PLUGIN=unjoined-stream"], &[]);
    all(&journal, &Verdict::Fail(FailKind::Abi));
}

fn lost_error() {
    let unwritten = || Verdict::Fail(FailKind::Unwritten);
    let expected: Vec<_> = (0..4).map(|_| unwritten()).collect();
    assert_eq!(verdicts(&["PLUGIN=lost-error"]), expected);
}

fn waiting() {
    let (exit, journal) = run(&cases(), &["PLUGIN=wait"], &[]);
    assert_eq!(exit, Exit::Ok);
    all(&journal, &Verdict::Pass);
    let noted = |end: &CaseEnd| end.notes.iter().any(|note| note.contains("is not checked"));
    assert!(noted(&journal.ends[0]), "{:?}", journal.ends[0].notes);
    assert!(!noted(&journal.ends[1]), "once is enough");
}

fn one_stream() {
    let (_, journal) = run(&cases(), &["ONE_STREAM=1"], &[]);
    all(&journal, &Verdict::Pass);
    let notes = &journal.ends[0].notes;
    assert!(
        notes.iter().any(|note| note.contains("did not go on")),
        "{notes:?}"
    );
}

fn leak() {
    let (exit, journal) = run(&cases(), &["PLUGIN=leak"], &[]);
    all(&journal, &Verdict::Fail(FailKind::Leak));
    let text = reason(&journal.ends[0]);
    assert!(text.contains("[4096, 4096, 4096] bytes"), "{text}");
    assert_eq!(exit, Exit::Failed);
}

fn suspect() {
    let (exit, journal) = run(&many(8), &["DEVICES=2", "FAULTY_DEVICE=1"], &[]);
    assert_eq!(exit, Exit::Failed);
    let device_of = |end: &CaseEnd| {
        let start = journal.starts.iter().find(|start| start.case == end.case);
        start.and_then(|start| start.device).unwrap()
    };
    let mut failed = 0;
    for end in &journal.ends {
        let suspect = end
            .notes
            .iter()
            .any(|note| note.starts_with("device-suspect: "));
        match device_of(end) {
            0 => assert_eq!((&end.verdict, suspect), (&Verdict::Pass, false)),
            _ => {
                failed += 1;
                let unwritten = Verdict::Fail(FailKind::Unwritten);
                assert_eq!((&end.verdict, suspect), (&unwritten, true));
            }
        }
    }
    assert!(failed > 0);
    // A failure everywhere is the plugin's.
    let (_, journal) = run(&many(2), &["DEVICES=2", "PLUGIN=lost-error"], &[]);
    assert!(journal.ends.iter().all(|end| end.notes.is_empty()));
}

fn health() {
    let sys = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = sys.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let ras = "bus/pci/devices/0000:00:00.0/ras/umc_err_count";
    let ras = write(ras, "ue: 0\nce: 0\n");
    let node = "class/kfd/kfd/topology/nodes/1";
    write(&format!("{node}/properties"), "location_id 0\ndomain 0\n");
    write(&format!("{node}/gpu_id"), "77\n");
    write("class/kfd/kfd/proc/4711/vram_77", "1048576\n");
    let sysfs = format!("DNN_ASSAY_SYSFS={}", sys.path().display());
    let counter = format!("RAS_FILE={}", ras.display());
    let (exit, journal) = run(&cases(), &[&sysfs, &counter], &[]);
    assert_eq!(exit, Exit::Ok, "told, and no failure");
    assert!(infra(&journal, InfraKind::ForeignProcess)[0].contains("4711"));
    let moved = infra(&journal, InfraKind::DeviceErrors);
    assert!(moved[0].contains("umc corrected 0 -> 4"), "{moved:?}");
    let (_, journal) = run(&cases(), &[&sysfs], &[]);
    assert!(infra(&journal, InfraKind::DeviceErrors).is_empty());
}

fn run_time_compiler() {
    let cache = tempfile::tempdir().unwrap();
    let folder = format!("DNN_ASSAY_GFX942_CACHE={}", cache.path().display());
    let variables = ["DNN_ASSAY_GFX942_KERNELS=rtc", &folder];
    let kept = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(cache.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    for _ in 0..2 {
        let (exit, journal) = run(&cases(), &variables, &[]);
        assert_eq!(exit, Exit::Ok);
        all(&journal, &Verdict::Pass);
        assert_eq!(kept().len(), 1);
    }
    // What is kept is used: other kernels in its place are none.
    let (file, whole) = (&kept()[0], std::fs::read(&kept()[0]).unwrap());
    std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
    let (exit, _) = run(&cases(), &variables, &[]);
    assert_eq!(exit, Exit::Ok, "half a file is compiled anew");
    assert_eq!(std::fs::read(file).unwrap(), whole);
}

fn no_kernels() {
    let variables = ["DNN_ASSAY_GFX942_KERNELS=rtc", "DNN_ASSAY_GFX942_RTC=off"];
    let (exit, journal) = run(&cases(), &variables, &[]);
    assert_eq!(exit, Exit::NothingVerified);
    all(&journal, &Verdict::Unsupported);
    assert_eq!(
        journal.plugins[0].engines[0].name.as_deref(),
        Some("DNN_ASSAY_GFX942_ENGINE")
    );
}

fn mutants() {
    use dnn_assay::power::{Fate, Table, power};
    let table = Table::embedded().unwrap_or_else(|problem| panic!("{}", problem.render(false)));
    let names: BTreeSet<String> = table
        .mutants
        .iter()
        .filter(|mutant| mutant.launches.is_some())
        .map(|mutant| mutant.name.clone())
        .collect();
    assert_eq!(names.len(), 3);
    let power = power(&table, &|name| names.contains(name), 1, &|_| ()).unwrap();
    for tried in &power.tried {
        assert_eq!(
            tried.fate(),
            Fate::Caught,
            "{}: {}",
            tried.mutant.name,
            tried.note
        );
    }
    assert!(
        power.clean_findings.is_empty(),
        "{:?}",
        power.clean_findings
    );
    assert!(power.clean_passed > 0);
}

/// The same run with guards looked at on the device, and on copies: the first case's verdict and
/// reason, which must be the same.
fn both_ways(case: &str, fault: &str) -> (Verdict, String) {
    let fault = format!("PLUGIN={fault}");
    let of = |variables: &[&str]| {
        let (_, journal) = run(&[case.to_owned()], variables, &[]);
        let end = &journal.ends[0];
        (end.verdict.clone(), reason(end).to_owned())
    };
    let device = of(&[&fault]);
    let copies = of(&[&fault, "DNN_ASSAY_DEVICE_GUARDS=host"]);
    assert_eq!(device, copies, "{case} {fault}");
    device
}

fn stray_writes() {
    // The output and each of the inputs have 840 bytes.
    let packed = CASES[0];
    for count in [1, 16, 4096] {
        for (word, offset, kind) in [
            (0, 840, FailKind::GuardAfter),
            (0, -count, FailKind::GuardBefore),
            (2, 840, FailKind::GuardAfter),
            (1, -count, FailKind::GuardBefore),
        ] {
            let (verdict, text) = both_ways(packed, &format!("invert:{word}:{offset}:{count}"));
            assert_eq!(verdict, Verdict::Fail(kind), "{text}");
            let extent = format!("from offset {offset} to {}", offset + count - 1);
            assert!(text.contains(&extent), "{text}");
        }
    }
    let (verdict, text) = both_ways(packed, "invert:1:100:40");
    assert_eq!(verdict, Verdict::Fail(FailKind::InputChanged), "{text}");
    assert!(text.contains("40 bytes from offset 100 to 139"), "{text}");
    // Rows of 7 elements in 8 places: bytes 28 to 31 are a gap.
    let strided = "pointwise.add/f32/nchw~s160x40x8x1/n3-c4-i5x7";
    let (verdict, text) = both_ways(strided, "invert:0:30:1");
    assert_eq!(verdict, Verdict::Fail(FailKind::GuardAfter), "{text}");
    assert!(text.contains("gaps between"), "{text}");
}

fn short_grids() {
    for case in [
        "pointwise.add/f32/nchw/n8-c16-i16x16",
        "pointwise.add/f16/nhwc/n8-c16-i16x16",
    ] {
        let (verdict, text) = both_ways(case, "short");
        assert_eq!(verdict, Verdict::Fail(FailKind::Unwritten), "{text}");
        assert!(text.contains("1024 of 32768 elements"), "{text}");
    }
}

fn copies_are_said() {
    let said = |end: &CaseEnd| {
        end.notes
            .iter()
            .any(|note| note.contains("checked on copies"))
    };
    let (exit, journal) = run(&cases(), &["DNN_ASSAY_DEVICE_GUARDS=host"], &[]);
    assert_eq!(exit, Exit::Ok);
    assert!(said(&journal.ends[0]), "{:?}", journal.ends[0].notes);
    assert!(!journal.ends[1..].iter().any(said), "once is enough");
    let (_, journal) = run(&cases(), &[], &[]);
    assert!(!journal.ends.iter().any(said));
}

fn other_source() {
    let folder = tempfile::tempdir().unwrap();
    // A library with a kernel of a right name, as an older build has it, and as one of another
    // source has it.
    let older = "struct row { const char *name; unsigned long bytes; void (*run)(const void *, \
        unsigned, unsigned, unsigned); };\n\
        static void run(const void *p, unsigned x, unsigned y, unsigned z) {}\n\
        static struct row rows[] = {{\"dnn_pointwise_light\", 352, run}, {0, 0, 0}};\n\
        struct row *dnn_assay_host_kernels(void) { return rows; }\n";
    let other = format!(
        "{older}const char *dnn_assay_host_kernels_fingerprint(void) {{\n\
         return \"dnn_fingerprint_0123456789abcdef\"; }}\n"
    );
    for (name, source) in [("older", older), ("other", &other)] {
        let (file, library) = (folder.path().join("k.c"), folder.path().join(name));
        std::fs::write(&file, source).unwrap();
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &file])
            .status();
        assert!(built.unwrap().success());
        let variable = format!("DNN_ASSAY_MOCK_HIP_KERNELS={}", library.display());
        let (exit, journal) = run(&cases(), &[&variable], &[]);
        assert_eq!(exit, Exit::Failed);
        all(&journal, &Verdict::Fail(FailKind::Status));
        let end = &journal.ends[0];
        assert!(reason(end).contains("different sources"), "{}", reason(end));
    }
}

fn device_words() {
    use dnn_assay::worker::{Asker, probe_devices};
    let asker = |variables: &[(&str, &str)]| Asker {
        library: built_in_file("libdnn_assay_mock_hip.so").ok(),
        env: variables
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Asker::default()
    };
    let kind = dnn_assay_device::MemoryKind::Hip;
    let said = |asker: &Asker| probe_devices(kind, asker).devices[0].guards.clone();
    let device = said(&asker(&[]));
    assert!(device.contains("on the device, by kernels of "), "{device}");
    let copies = said(&asker(&[("DNN_ASSAY_DEVICE_GUARDS", "host")]));
    assert!(copies.contains("on copies in host memory"), "{copies}");
}
