//! The policy file: reading, and errors at the line that is wrong.

use std::path::Path;

use dnn_assay_elf::{Policy, PolicyError, ReadyPolicy};

use crate::gate::read_document;
use crate::yaml::{self, Place, Problem, Source, Step};

/// A policy with every key, as the documentation shows it.
pub const EXAMPLE: &str = r#"contract: engine-plugin        # or heuristic-plugin, library
exports:
  allow: ["my_vendor_*"]       # fine besides the entry points: names or globs, mangled or readable
  expect: [my_vendor_version]  # must be there: exact mangled names
needed:
  allow: [libc.so.6, libm.so.6, "libstdc++.so.*", libgcc_s.so.1, libamdhip64.so.7]
  forbid: ["libpython*", "libhipdnn_backend*"]
max-versions: {GLIBC: "2.34", GLIBCXX: "3.4.30"}
arch: "gfx942:sramecc+:xnack-"
severities:
  abi/build-id: warning        # off, info, warning, error
exceptions:
  - rule: export/third-party
    subject: "fmt::*"          # without it: any subject
    reason: hidden in the next release
    expires: 2027-01-31        # the last day on which it holds
listed-per-rule: 100
"#;

/// All that is wrong with a policy file.
#[derive(Clone, Debug)]
pub struct PolicyProblem(Vec<Problem>);

impl PolicyProblem {
    /// The problems with their source lines, in colour or plain.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let problems: Vec<_> = self.0.iter().map(|p| p.render(colour)).collect();
        problems.join("\n\n")
    }
}

impl From<Box<Problem>> for PolicyProblem {
    fn from(problem: Box<Problem>) -> Self {
        Self(vec![*problem])
    }
}

/// Reads a policy and makes it ready to match.
///
/// # Errors
/// [`PolicyProblem`] with the first syntax error, or with every error of the content.
pub fn read_policy(path: &Path) -> Result<(Policy, ReadyPolicy), PolicyProblem> {
    let source = read_document(path, "--policy")?;
    parse(&source)
}

fn parse(source: &Source) -> Result<(Policy, ReadyPolicy), PolicyProblem> {
    // A file of nothing but comments is no mapping for YAML, and for a person the default.
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let policy = match source.text.lines().all(blank) {
        true => Policy::default(),
        false => yaml::read::<Policy>(source)?,
    };
    match policy.ready() {
        Ok(ready) => Ok((policy, ready)),
        Err(errors) => {
            let problems = errors.iter().map(|error| problem(source, &policy, error));
            Err(PolicyProblem(problems.collect()))
        }
    }
}

/// The error at its place in the file.
fn problem(source: &Source, policy: &Policy, error: &PolicyError) -> Problem {
    let place = match error {
        PolicyError::UnknownRule { name, .. } => rule_place(source, policy, name),
        PolicyError::Pattern { pattern, .. } => pattern_place(source, policy, pattern),
        PolicyError::Date { text } => {
            let dated = |e: &dnn_assay_elf::policy::Exception| e.expires.as_ref() == Some(text);
            let index = policy.exceptions.iter().position(dated);
            exception_place(source, index, "expires", "this date")
        }
        PolicyError::Version { family, .. } => {
            after(source, "max-versions", family, "this family's version")
        }
        PolicyError::Arch { .. } => source.place_of(&[Step::Key("arch")], "this target"),
    };
    let problem = Problem::new(error.to_string(), place);
    match error {
        PolicyError::UnknownRule { .. } => {
            problem.help("`dnn-assay inspect --list` shows every rule")
        }
        _ => problem,
    }
}

fn rule_place(source: &Source, policy: &Policy, name: &str) -> Place {
    let label = "no such rule";
    if policy.severities.contains_key(name) {
        return after(source, "severities", name, label);
    }
    let index = policy.exceptions.iter().position(|e| e.rule == name);
    exception_place(source, index, "rule", label)
}

fn pattern_place(source: &Source, policy: &Policy, pattern: &String) -> Place {
    let lists: [(&[String], [&'static str; 2]); 3] = [
        (&policy.exports.allow, ["exports", "allow"]),
        (&policy.needed.allow, ["needed", "allow"]),
        (&policy.needed.forbid, ["needed", "forbid"]),
    ];
    for (list, [section, key]) in lists {
        if let Some(index) = list.iter().position(|item| item == pattern) {
            let path = [Step::Key(section), Step::Key(key), Step::Item(index)];
            return source.place_of(&path, "this pattern");
        }
    }
    let of = |e: &dnn_assay_elf::policy::Exception| e.subject.as_ref() == Some(pattern);
    let index = policy.exceptions.iter().position(of);
    exception_place(source, index, "subject", "this pattern")
}

fn exception_place(source: &Source, index: Option<usize>, key: &'static str, label: &str) -> Place {
    let item = Step::Item(index.unwrap_or_default());
    source.place_of(&[Step::Key("exceptions"), item, Step::Key(key)], label)
}

/// A key of a mapping whose keys are the writer's own: paths name only keys that this program
/// knows, so the key is searched for in the text of the mapping.
fn after(source: &Source, section: &'static str, key: &str, label: &str) -> Place {
    let start = yaml::locate(&source.text, &[Step::Key(section)]).unwrap_or(0);
    let found = source.text[start..].find(key).unwrap_or(0);
    let mut place = source.place(start + found, label);
    place.span = place.span.start..place.span.start + key.len();
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn the_example_is_a_policy_and_names_every_key() {
        let (policy, _) = parse(&Source::new("example.yaml", EXAMPLE)).expect("it is right");
        assert_eq!(policy.exceptions.len(), 1);
        let all = serde_json::to_value(&policy).expect("a policy is data");
        for key in all.as_object().expect("a mapping").keys() {
            assert!(EXAMPLE.contains(&format!("{key}:")), "{key}");
        }
    }

    #[test]
    fn a_file_of_comments_is_the_default() {
        let (policy, _) = parse(&Source::new("p.yaml", "# later\n\n")).expect("it is right");
        assert_eq!(policy, Policy::default());
    }

    #[rstest]
    #[case("exports:\n  alow: [a]\n", &["p.yaml:2:3", "alow", "did you mean `allow`"])]
    #[case("needed: {}\nseverities:\n  load/textrel: error\n  export/unlsited: info\n",
        &["p.yaml:4:3", "^^^^^^^^^^^^^^^", "did you mean `export/unlisted`", "--list"])]
    #[case("exceptions:\n  - rule: export/std\n    reason: x\n  - {rule: export/st, reason: y}\n",
        &["p.yaml:4:12", "no such rule"])]
    #[case("exceptions: [{rule: export/std, reason: x, expires: soon}]\n",
        &["p.yaml:1:53", "`soon` is no date"])]
    #[case("exceptions:\n  - rule: export/std\n", &["missing field `reason`", "p.yaml:2"])]
    #[case("exports:\n  allow: [fine, 'x[*']\n", &["p.yaml:2:17", "is no pattern"])]
    #[case("max-versions:\n  GLIBC: new\n", &["p.yaml:2:3", "is no version for GLIBC"])]
    #[case("arch: mi300\n", &["p.yaml:1:7", "no device architecture"])]
    #[case("severities: {export/std: eror}\n", &["eror", "did you mean `error`"])]
    fn mistakes_are_pointed_at(#[case] text: &str, #[case] parts: &[&str]) {
        let problem = parse(&Source::new("p.yaml", text)).expect_err("it is wrong");
        let message = problem.render(false);
        for part in parts {
            assert!(message.contains(part), "`{part}` is missing in\n{message}");
        }
    }

    #[test]
    fn every_mistake_is_named() {
        let text = "arch: mi300\nexceptions: [{rule: a, reason: b}, {rule: c, reason: d}]\n";
        let problem = parse(&Source::new("p.yaml", text)).expect_err("it is wrong");
        assert_eq!(problem.0.len(), 3);
    }
}
