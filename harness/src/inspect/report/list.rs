//! The rules themselves: what there is, and why.

use std::io::{self, Write};

use super::{all_rules, severity};
use crate::inspect::policy::EXAMPLE;

/// One line per rule.
///
/// # Errors
/// What `out` says.
pub fn list_text(out: &mut dyn Write) -> io::Result<()> {
    for rule in all_rules() {
        let severity = severity(rule.severity);
        writeln!(out, "{:<28} {severity:<8} {}", rule.id, rule.demand)?;
    }
    Ok(())
}

/// A JSON array.
///
/// # Errors
/// What `out` says.
pub fn list_json(out: &mut dyn Write) -> io::Result<()> {
    let list: Vec<_> = all_rules().collect();
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

const PREFACE: &str = "\
# What inspection looks at

`dnn-assay inspect FILE…` reads plugin files and says what would go wrong when a host loads them: it
loads nothing and runs nothing, no `ldd` either. The dependencies are searched as glibc's loader would
search them here and now, with `LD_LIBRARY_PATH` and `LD_PRELOAD` as they are set; `--lib-path DIR` adds a
folder in front. With two or more files, every two are held against each other too.

The report begins with what to do, the most effective step first. Then come the findings by rule, with
readable names, the reason, the fix, and the command that shows the same without this program. `--format
json` and `--junit FILE` (one case per rule) are for pipelines.

| exit code | when |
| --- | --- |
| 0 | no error; there may be warnings and notes |
| 1 | an error that no exception accepts |
| 2 | wrong usage, an unreadable file, or a policy that makes no sense |
| 3 | a file that is no plugin for this machine: it is named (text, Windows DLL, Mach-O, truncated, ...) |

## The policy

`--policy FILE` says what a project allows. Every key is optional:

```yaml
";

const BASELINE: &str = "\
```

`allow`, `forbid` and `subject` are exact names or globs with `*` and `?`, mangled or readable. A misspelt key or
rule is an error with its line. An exception past its last day counts no more and is a finding itself,
and one that matches nothing is pointed out. `--arch TARGET` stands for the key `arch`.

`--write-baseline FILE` writes a policy with an exception for every error and warning of today. Give it as
`--policy` and only what is new counts; its diff is what to review.

## Figures

A release build on two cores of a busy x86-64 machine; processor time, so that the load does not count:

| | measured | wanted |
| --- | --- | --- |
| a library of 51 MB with 100,000 exported C++ functions | 0.25 s; 98 MB resident, 1.9 times the file | 1 s, 4 times the file |
| a C++ plugin of 650 dynamic symbols, beside `nm -D` into `c++filt` | 0.26 of the tools' time | less than the tools |
| findings on files without a fault | 0 | 0 |

`cargo bench -p dnn-assay-elf --bench inspect` makes both libraries and times both programs. Files without
a fault are the built-in CPU plugin, the C example, the C++ example with its version script, clang's HIP
mode with hidden visibility, and for the rules of loading and importing at least twenty C libraries of the
system; their true findings stand with reasons in `harness/elf/tests/system_libraries.rs`.

## The rules

Each has a severity, which the policy may change or switch off. This page is made by
`dnn-assay inspect --list --format markdown`; a test holds it to the rules.
";

/// The page of the documentation.
///
/// # Errors
/// What `out` says.
pub fn list_markdown(out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{PREFACE}{EXAMPLE}{BASELINE}")?;
    let mut group = "";
    for rule in all_rules() {
        if rule.group() != group {
            group = rule.group();
            let title = title(group);
            writeln!(
                out,
                "\n### {title}\n\n| rule | severity | demand | why | fix |"
            )?;
            writeln!(out, "| --- | --- | --- | --- | --- |")?;
        }
        let severity = severity(rule.severity);
        let [demand, reason, fix] = [rule.demand, rule.reason, rule.fix].map(cell);
        let (id, link) = (rule.id, rule.link);
        writeln!(
            out,
            "| `{id}` | {severity} | {demand} | {reason} | {fix} ([more]({link})) |"
        )?;
    }
    Ok(())
}

/// A group's heading.
fn title(group: &str) -> &str {
    match group {
        "abi" => "The plugin's contract",
        "export" => "What the file lets others see",
        "import" => "What it takes from others",
        "load" => "How it is loaded",
        "device" => "Device code",
        "pair" => "Two files in one process",
        "policy" => "The policy itself",
        "elf" => "The file's structure",
        other => other,
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('_', "\\_")
        .replace('<', "&lt;")
}
