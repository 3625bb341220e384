//! Readers that go away: `dnn-assay list | head` ends as it would have, quietly.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use crate::support::command;
use rstest::rstest;

/// The exit code and the messages of a command whose output nobody reads beyond a few bytes.
fn unread(arguments: &[&str], read: usize) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    let streams = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.args(arguments).spawn().unwrap();
    let mut reader = child.stdout.take().unwrap();
    reader.read_exact(&mut vec![0; read]).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), messages)
}

#[rstest]
// More than a pipe holds, so that the writer meets the closed end.
#[case(&["list", "--suite", "full"], 0)]
#[case(&["list", "--format", "json"], 0)]
#[case(&["conform", "--list", "--format", "markdown"], 0)]
#[case(&["man"], 0)]
#[case(&["completions", "bash"], 0)]
// A failure stays one, and so does a wrong word.
#[case(&["inspect", "/lib/x86_64-linux-gnu/libc.so.6"], 1)]
fn a_closed_pipe_changes_no_exit_code(#[case] arguments: &[&str], #[case] code: i32) {
    for read in [0, 10] {
        let (ended, messages) = unread(arguments, read);
        assert_eq!(ended, Some(code), "{arguments:?}: {messages}");
        assert!(!messages.contains("Broken pipe"), "{messages}");
        assert!(!messages.contains("panicked"), "{messages}");
    }
}

#[test]
fn closed_messages_change_no_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    let streams = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = streams.args(["explain", "conv.fprop"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_full_disk_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command(folder.path())
        .arg("list")
        .stdout(full)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{messages}");
    assert!(messages.contains("No space left"), "{messages}");
}
