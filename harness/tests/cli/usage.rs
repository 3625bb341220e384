//! Mistakes on the command line and in suite files: exit code 2 with the place.

use crate::support::run;
use dnn_assay::exit::Exit;
use rstest::rstest;

#[test]
fn no_subcommand_prints_the_help() {
    let ran = run(&[]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("Usage: dnn-assay") && ran.err.contains("explain"),
        "{ran:#?}"
    );
    run(&["--help"]).expect(Exit::Ok, &["Exit codes", "130"]);
}

#[rstest]
#[case(&["runn"], "a similar subcommand exists: 'run'")]
#[case(&["run", "--sute", "smoke"], "--suite")]
#[case(&["run", "--suite", "smok"], "did you mean `smoke`")]
#[case(&["run", "--suite", "standard"], "--suite full --filter tier=standard")]
#[case(&["run", "--filter", "dtpye=f16"], "--filter: term 'dtpye=f16': no field is called")]
#[case(&["run", "--filter", "dtpye=f16"], "did you mean 'dtype'")]
#[case(&["run", "--filter", "foo=1"], "no field is called 'foo'; fields are op")]
#[case(&["run", "--filter", "op=conv dtype=i32"], "takes none of the")]
#[case(&["run", "--case", "conv.fprp/f32/nchw/n1-c1-k1-i4x4-f1x1"], "conv.fprop")]
#[case(&["run", "--case", "conv.fprop/f33/nchw/n1-c1-k1-i4x4-f1x1"], "f32")]
#[case(&["run", "--case", "pointwise.add/f32/nchw/n1-c1-i2x2/none/uni@A"], "give it as --engine A")]
#[case(&["run", "--timeout", "exec=3s"], "no phase is called 'exec'")]
#[case(&["run", "--budget", "soon"], "is no time")]
#[case(&["run", "--trait", "fp16"], "no trait")]
#[case(&["run", "--engine", "a["], "--engine: 'a[' is no glob, from character 2 on: unclosed")]
#[case(&["traits", "--engine", "a["], "--engine: 'a[' is no glob, from character 2 on: unclosed")]
#[case(&["dev", "power", "--mutant", "a["], "--mutant: 'a[' is no glob, from character 2 on: ")]
#[case(&["dev", "power", "--mutant", "a["], "or put a character that is meant as itself in bracke")]
#[case(&["dev", "power", "--mutant", "nine"], "--mutant: none is called nine; mocks/mutants/mutan")]
#[case(&["conform", "--check", "ab}"], "--check: 'ab}' is no glob, from character 3 on: unopened")]
#[case(&["conform", "--check", "ab"], "--check 'ab': no check is called that; --list shows them")]
#[case(&["list", "--filter", "!~k("], "--filter: 'k(' is no regular expression, from character 2")]
#[case(&["list", "--filter", "~k("], "from character 2 on: unclosed group (put a character that ")]
#[case(&["explain", "conv.fprop"], "conv.fprop")]
#[case(&["report", "nowhere"], "nowhere")]
fn mistakes_are_pointed_at(#[case] arguments: &[&str], #[case] text: &str) {
    run(arguments).expect(Exit::Usage, &[text]);
}

#[test]
fn an_absent_engine_is_a_plugin_error() {
    run(&[
        "run",
        "--builtin",
        "--engine",
        "MIOPEN_ENGINE",
        "--filter",
        "op=pointwise.add",
    ])
    .expect(Exit::Plugin, &["MIOPEN_ENGINE", "DNN_ASSAY_CPU_ENGINE"]);
}

#[rstest]
#[case("schema: 1\nabout: x\ngrups: []\n", &["grups", "groups", ":3:"])]
#[case("schema: 1\nabout: x\ninclude: [suite.yaml]\n", &["cycle"])]
#[case("schema: [", &["suite.yaml"])]
fn suite_files_are_pointed_at(#[case] text: &str, #[case] parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suite.yaml");
    std::fs::write(&path, text).unwrap();
    run(&["list", "--suite", path.to_str().unwrap()]).expect(Exit::Usage, parts);
}

#[test]
fn lists_and_explains_without_a_plugin() {
    let list = run(&["list", "--filter", "op=conv.wgrad dtype=bf16"]);
    list.expect(Exit::Ok, &["conv.wgrad/bf16/"]);
    let first = list.out.lines().next().unwrap();
    run(&["explain", first]).expect(Exit::Ok, &["Tensors", "Constants of the bound", "decoys"]);
    let json = run(&["list", "--format", "json", "--filter", "op=pointwise.add"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(value["cases"][0]["memory_bytes"].as_f64().unwrap() > 0.0);
    assert!(
        value["tiers"]
            .as_object()
            .unwrap()
            .values()
            .all(|t| t["cases"].as_u64() > Some(0))
    );
}

#[test]
fn tiers_have_their_time_and_memory() {
    let ran = run(&["list", "--suite", "full", "--format", "tiers"]);
    ran.expect(Exit::Ok, &["core", "standard", "MiB"]);
    let cases = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let lines: Vec<&str> = ran.out.lines().collect();
    let (all, tiers) = lines.split_last().unwrap();
    assert_eq!(tiers.len(), 4, "{ran:#?}");
    assert_eq!(
        cases(all),
        tiers.iter().map(|line| cases(line)).sum::<u64>()
    );
    assert!(
        !ran.out.contains("giant"),
        "2^31 elements are asked for by name"
    );
    run(&["list", "--suite", "giant"]).expect(Exit::Ok, &["1024x1025"]);
}

#[rstest]
#[case(&["reference"], "check")]
#[case(&["reference", "check"], "DIR")]
#[case(&["reference", "check", "nowhere"], "nowhere")]
#[case(&["import", "bundle", "nowhere", "--write", "suite.yaml"], "nowhere")]
#[case(&["import", "bundle", "."], "--write")]
#[case(&["reference", "check", "."], "no bundle here")]
#[case(&["reference", "check", ".", "--trait", "fp16"], "no trait")]
fn mistakes_of_the_reference_command(#[case] arguments: &[&str], #[case] text: &str) {
    run(arguments).expect(Exit::Usage, &[text]);
}

#[test]
fn bundles_are_judged_and_damage_is_named() {
    let bundles = crate::support::repository("fixtures/golden/bundles");
    let bundles = bundles.to_str().unwrap();
    run(&["reference", "check", bundles])
        .expect(Exit::Ok, &["0 differ", "0 broken", "worst margin"]);
    let folder = tempfile::tempdir().unwrap();
    let [suite, claims] = ["suite.yaml", "claims.yaml"].map(|name| folder.path().join(name));
    let [suite, claims] = [suite.to_str().unwrap(), claims.to_str().unwrap()];
    run(&[
        "import", "bundle", bundles, "--write", suite, "--claims", claims,
    ])
    .expect(Exit::Ok, &["3 bundles: 3 became 3 cases", "1 claim"]);
    run(&["run", "--builtin", "--suite", suite]).expect(Exit::Ok, &["3 verified"]);
    run(&["import", "bundle", bundles, "--write", "no/such/file"])
        .expect(Exit::Usage, &["no/such"]);
    let graph = crate::support::repository("fixtures/json");
    let graph = graph.to_str().unwrap();
    run(&["reference", "check", graph]).expect(Exit::Usage, &["broken", "meta.json"]);
}

#[test]
fn completions_and_the_manual_come_from_the_same_definitions() {
    run(&["completions", "bash"]).expect(Exit::Ok, &["dnn-assay", "--min-verified"]);
    run(&["man"]).expect(Exit::Ok, &["dnn-assay-run", "min\\-verified"]);
}

#[test]
fn an_output_folder_that_cannot_be_made_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let out = file.join("out");
    run(&["run", "--builtin", "--out", out.to_str().unwrap()]).expect(Exit::Usage, &["--out"]);
    run(&["run", "--builtin", "--junit", "no/such/folder/junit.xml"])
        .expect(Exit::Usage, &["no/such/folder/junit.xml"]);
}
