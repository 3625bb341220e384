//! The rules as data, and one function per group that checks them.

mod contract;
mod device;
mod exports;
mod imports;
mod integrity;
mod loading;
mod search_paths;

use crate::closure::{Bindings, Closure, FileSource};
use crate::finding::{Severity, VersionDemand};
use crate::identify::PluginFile;
use crate::offload::DeviceCode;
use crate::policy::ReadyPolicy;
use crate::view::ElfView;
use serde::Serialize;

pub(crate) use exports::{VERSION_SCRIPT, contract_names, is_generated_handle};
pub(crate) use imports::version_demands;

/// A rule: what it demands, why, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The id, `group/name`.
    pub id: &'static str,
    /// How much a finding matters, unless the policy says otherwise.
    pub severity: Severity,
    /// What has to hold, in a few words.
    pub demand: &'static str,
    /// Why it matters, in one line.
    pub reason: &'static str,
    /// What to do about a finding.
    pub fix: &'static str,
    /// Where to read more.
    pub link: &'static str,
    /// The command that shows the same; `{file}` and `{subject}` stand for the finding's.
    pub command: &'static str,
}

impl Rule {
    /// The part of the id before the slash.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(group, _)| group)
    }

    pub(crate) fn command_for(&self, file: &str, subject: Option<&str>) -> String {
        self.command
            .replace("{file}", &quoted(file))
            .replace("{subject}", &quoted(subject.unwrap_or_default()))
    }
}

/// Quotes a word for the shell where it needs it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// All rules for one file, by group.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        contract::RULES,
        exports::RULES,
        imports::RULES,
        loading::RULES,
        search_paths::RULES,
        device::RULES,
        integrity::RULES,
        POLICY_RULES,
    ]
    .into_iter()
    .flatten()
}

/// The rule, of one file or of pairs, with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Rule> {
    all().chain(crate::pairs::RULES).find(|rule| rule.id == id)
}

/// The rule id that is most like a misspelt one.
#[must_use]
pub fn nearest(id: &str) -> Option<&'static str> {
    all()
        .chain(crate::pairs::RULES)
        .map(|rule| (strsim::damerau_levenshtein(rule.id, id), rule.id))
        .min()
        .filter(|(distance, _)| *distance <= 8)
        .map(|(_, id)| id)
}

/// Rules about the policy itself; the inspection checks them once all findings are known.
pub(crate) const POLICY_RULES: &[Rule] = &[
    Rule {
        id: "policy/expired-exception",
        severity: Severity::Warning,
        demand: "no exception is past its last day",
        reason: "what was accepted for a while counts again",
        fix: "fix the finding, or renew the exception with a reason",
        link: crate::links::DSO_HOWTO,
        command: "",
    },
    Rule {
        id: "policy/unused-exception",
        severity: Severity::Info,
        demand: "every exception matches a finding",
        reason: "an exception without a finding hides the next one",
        fix: "remove the exception",
        link: crate::links::DSO_HOWTO,
        command: "",
    },
];

/// Everything that the rules look at.
pub(crate) struct Context<'a> {
    pub view: &'a ElfView<'a>,
    pub file: &'a PluginFile,
    pub file_name: &'a str,
    pub closure: &'a Closure,
    pub bindings: &'a Bindings,
    pub device: &'a DeviceCode,
    pub demands: &'a [VersionDemand],
    pub policy: &'a ReadyPolicy,
    pub source: &'a dyn FileSource,
}

/// One finding before the policy has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub rule: &'static str,
    pub subject: Option<String>,
    pub detail: String,
}

/// What the rules of a group found, and which of them had nothing to look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    pub drafts: Vec<Draft>,
    pub not_applicable: Vec<(&'static str, String)>,
}

impl Checks {
    pub fn found(
        &mut self,
        rule: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.drafts.push(Draft {
            rule,
            subject: Some(subject.into()),
            detail: detail.into(),
        });
    }

    pub fn file(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.drafts.push(Draft {
            rule,
            subject: None,
            detail: detail.into(),
        });
    }

    pub fn skip(&mut self, rule: &'static str, reason: impl Into<String>) {
        self.not_applicable.push((rule, reason.into()));
    }

    fn append(&mut self, mut other: Self) {
        self.drafts.append(&mut other.drafts);
        self.not_applicable.append(&mut other.not_applicable);
    }
}

/// Checks every group.
pub(crate) fn check(context: &Context<'_>) -> Checks {
    let mut checks = Checks::default();
    for group in [
        contract::check,
        exports::check,
        imports::check,
        loading::check,
        search_paths::check,
        device::check,
        integrity::check,
    ] {
        checks.append(group(context));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_every_rule_explains_itself() {
        let rules: Vec<_> = all().chain(crate::pairs::RULES).collect();
        let ids: HashSet<_> = rules.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), rules.len());
        for rule in rules {
            assert!(rule.id.contains('/'), "{}", rule.id);
            for text in [rule.demand, rule.reason, rule.fix] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}", rule.id);
            }
            assert!(rule.link.starts_with("https://"), "{}", rule.id);
        }
    }

    #[test]
    fn a_misspelt_rule_has_a_neighbour() {
        assert_eq!(nearest("export/unlsited"), Some("export/unlisted"));
        assert_eq!(nearest("something else entirely"), None);
    }

    #[test]
    fn commands_quote_what_the_shell_would_split() {
        let rule = find("load/textrel").unwrap();
        assert!(
            rule.command_for("my plugin.so", None)
                .contains("'my plugin.so'")
        );
    }
}
