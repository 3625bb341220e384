//! A plugin that needs a device, on a machine without one.

use crate::support::{IDENTITY, mock, run_with};
use dnn_assay::exit::Exit;
use rstest::rstest;

fn run_hip(variables: &[(&str, &str)]) -> crate::support::Ran {
    let path = mock();
    let plugin = path.to_str().unwrap();
    run_with(
        &["run", plugin, "--device", "hip", "--case", IDENTITY],
        variables,
    )
}

fn has_amd_gpu() -> bool {
    std::path::Path::new("/dev/kfd").exists()
}

#[rstest]
#[case(&[], Exit::NothingVerified)]
#[case(&[("DNN_ASSAY_SKIP_IF_NO_DEVICE", "1")], Exit::Skip)]
#[case(&[("DNN_ASSAY_REQUIRE_DEVICE", "1")], Exit::Infrastructure)]
fn without_a_device_the_variables_decide(#[case] variables: &[(&str, &str)], #[case] exit: Exit) {
    if has_amd_gpu() {
        eprintln!("this machine has an AMD GPU: nothing to see here");
        return;
    }
    run_hip(variables).expect(exit, &["no-device"]);
}

#[test]
fn both_variables_contradict_each_other() {
    let both = [
        ("DNN_ASSAY_SKIP_IF_NO_DEVICE", "1"),
        ("DNN_ASSAY_REQUIRE_DEVICE", "1"),
    ];
    run_hip(&both).expect(Exit::Usage, &["contradict"]);
}

#[test]
fn the_plugin_folder_of_the_environment_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(mock(), folder.path().join("mine.so")).unwrap();
    let variables = [("HIPDNN_PLUGIN_DIR", folder.path().to_str().unwrap())];
    run_with(&["run", "--case", IDENTITY], &variables)
        .expect(Exit::Ok, &["mine.so", "HIPDNN_PLUGIN_DIR", "2 verified"]);
    run_with(&["run", "--builtin", "--case", IDENTITY], &variables)
        .expect(Exit::Ok, &["libdnn_assay_cpu_plugin.so", "1 verified"]);
}
