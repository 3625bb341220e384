//! PyTorch on the CPU in f64, asked through a child process beside our own measurements.

use crate::problems::{Direction, Problem};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The child that `DNN_ASSAY_TORCH_PYTHON` names the interpreter of.
pub struct Torch {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Its version, as it said at the start.
    pub version: String,
}

impl Torch {
    /// `None` where the variable is not set.
    ///
    /// # Panics
    /// If the interpreter cannot be started or has no PyTorch.
    pub fn start() -> Option<Self> {
        let python = std::env::var_os("DNN_ASSAY_TORCH_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/anchors/torch_f64.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(rayon::current_num_threads().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("DNN_ASSAY_TORCH_PYTHON names a Python interpreter");
        let questions = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut torch = Self {
            child,
            questions,
            answers,
            version: String::new(),
        };
        torch.version = torch.answer();
        Some(torch)
    }

    /// The time of a convolution.
    pub fn convolution(&mut self, problem: &Problem, direction: Direction) -> Duration {
        let Problem {
            batch,
            groups,
            channels,
            filters,
            size,
            depth,
            taps,
            ..
        } = problem;
        self.ask(&format!(
            "{direction:?} {batch} {groups} {channels} {filters} {depth} {size} {taps}"
        ))
    }

    /// The time of the answer to one line.
    pub fn ask(&mut self, question: &str) -> Duration {
        writeln!(self.questions, "{question}").expect("the child reads");
        Duration::from_secs_f64(
            self.answer()
                .parse()
                .expect("the child answers with seconds"),
        )
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the child writes");
        assert!(!line.is_empty(), "the interpreter ended: has it PyTorch?");
        line.trim().to_owned()
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        // Its input has not ended yet, so it is told to end.
        let _ = writeln!(self.questions, "end");
        let _ = self.child.wait();
    }
}
