//! One file: facts, then rules, then the policy's word on what they found.

use crate::closure::{Bindings, Closure, FileBytes, FileSource, LoadEnvironment, walk};
use crate::demangle::demangle;
use crate::finding::{
    ClosureFact, Facts, Finding, Inspection, LoadPrediction, RuleOutcome, RuleState, Severity,
    Subject, Waiver,
};
use crate::identify::PluginFile;
use crate::memory::memory_kind_evidence;
use crate::not_a_plugin::NotAPlugin;
use crate::offload::device_code;
use crate::policy::{Level, ReadyException, ReadyPolicy};
use crate::rules::{self, Checks, Context, Draft, Rule, version_demands};
use crate::view::{ElfView, check_shared_object};
use jiff::civil::Date;
use std::collections::HashMap;
use std::path::Path;

/// Where and against what a file is inspected.
pub struct Setting<'a> {
    /// What steers the loader.
    pub environment: &'a LoadEnvironment,
    /// Where the libraries are read from.
    pub source: &'a dyn FileSource,
    /// What the project allows.
    pub policy: &'a ReadyPolicy,
    /// The day, which exceptions expire by.
    pub today: Date,
}

/// Inspects one file.
///
/// # Errors
/// [`NotAPlugin`] when the file is no shared object for this machine.
pub fn inspect(
    path: &Path,
    bytes: &FileBytes,
    setting: &Setting<'_>,
) -> Result<Inspection, NotAPlugin> {
    let view = ElfView::parse(bytes)?;
    check_shared_object(&view).map_err(NotAPlugin::new)?;
    let file = PluginFile::of(&view);
    let closure = walk(path, bytes, setting.environment, setting.source)?;
    let bindings = Bindings::of(&closure);
    let device = device_code(&view);
    let demands = version_demands(&view);
    let file_name = path.file_name().map(|n| n.to_string_lossy());
    let checks = rules::check(&Context {
        view: &view,
        file: &file,
        file_name: &file_name.unwrap_or_default(),
        closure: &closure,
        bindings: &bindings,
        device: &device,
        demands: &demands,
        policy: setting.policy,
        source: setting.source,
    });
    let judged = judge(checks, rules::all(), path, setting.policy, setting.today);
    let memory = memory_kind_evidence(&file, |name| closure.needed_of(name));
    Ok(Inspection {
        path: path.to_path_buf(),
        facts: Facts {
            size: bytes.len() as u64,
            symbol_counts: *view.symbol_counts(),
            forgiven: view.forgiven().to_vec(),
            closure: closure_facts(&closure),
            prediction: prediction(&bindings, &judged.outcomes),
            constructors: view.constructors(),
            file,
            demands,
            device,
            memory,
        },
        outcomes: judged.outcomes,
        findings: judged.findings,
    })
}

fn closure_facts(closure: &Closure) -> Vec<ClosureFact> {
    closure.scope[1..]
        .iter()
        .map(|&index| {
            let object = &closure.objects[index];
            ClosureFact {
                name: object.display_name(),
                path: object.path.clone(),
                place: object.place,
                in_host: index < closure.subject,
            }
        })
        .collect()
}

fn prediction(bindings: &Bindings, outcomes: &[RuleOutcome]) -> LoadPrediction {
    let refused = outcomes.iter().any(|outcome| {
        let found = matches!(outcome.state, RuleState::Checked { found, .. } if found > 0);
        outcome.rule == "load/refused" && found
    });
    LoadPrediction {
        loads: bindings.failures.is_empty() && !refused,
        loader_text: bindings
            .failures
            .first()
            .map(|failure| failure.loader_text()),
        failures: bindings.failures.clone(),
    }
}

/// What is left of the checks once the policy has spoken.
pub(crate) struct Judged {
    pub outcomes: Vec<RuleOutcome>,
    pub findings: Vec<Finding>,
}

/// Applies severities, exceptions and the list's limit.
pub(crate) fn judge(
    checks: Checks,
    all: impl Iterator<Item = &'static Rule>,
    path: &Path,
    policy: &ReadyPolicy,
    today: Date,
) -> Judged {
    let Checks {
        drafts,
        not_applicable,
    } = checks;
    let skipped: HashMap<&str, String> = not_applicable.into_iter().collect();
    let mut by_rule: HashMap<&str, Vec<Draft>> = HashMap::new();
    for draft in drafts {
        by_rule.entry(draft.rule).or_default().push(draft);
    }
    let mut matched = vec![false; policy.exceptions.len()];
    let mut judged = Judged {
        outcomes: Vec::new(),
        findings: Vec::new(),
    };
    for rule in all {
        let mut drafts = by_rule.remove(rule.id).unwrap_or_default();
        if rules::POLICY_RULES.contains(rule) {
            drafts = about_exceptions(rule.id, policy, &matched, today);
        }
        let level = policy.policy.severities.get(rule.id).copied();
        let severity = level.map_or(Some(rule.severity), Level::severity);
        let state = match (severity, skipped.get(rule.id)) {
            (None, _) => RuleState::Off,
            (_, Some(reason)) if drafts.is_empty() => RuleState::NotApplicable {
                reason: reason.clone(),
            },
            (Some(severity), _) => {
                let judge = RuleJudge {
                    rule,
                    severity,
                    path,
                    policy,
                    today,
                };
                judge.list(drafts, &mut matched, &mut judged.findings)
            }
        };
        judged.outcomes.push(RuleOutcome {
            rule: rule.id,
            severity: severity.unwrap_or(rule.severity),
            state,
        });
    }
    judged
        .findings
        .sort_by_key(|f| std::cmp::Reverse(f.severity));
    judged
}

struct RuleJudge<'a> {
    rule: &'static Rule,
    severity: Severity,
    path: &'a Path,
    policy: &'a ReadyPolicy,
    today: Date,
}

impl RuleJudge<'_> {
    fn list(
        &self,
        drafts: Vec<Draft>,
        matched: &mut [bool],
        findings: &mut Vec<Finding>,
    ) -> RuleState {
        let exceptions: Vec<(usize, &ReadyException)> = self
            .policy
            .exceptions
            .iter()
            .enumerate()
            .filter(|(_, exception)| exception.source.rule == self.rule.id)
            .collect();
        let found = drafts.len();
        let limit = self.policy.policy.listed_per_rule;
        // What is waived takes no place from what counts.
        let (mut waived, mut counting) = (0, 0);
        for draft in drafts {
            let mut waiver = None;
            for &(index, exception) in exceptions.iter().filter(|(_, e)| excepts(e, &draft)) {
                matched[index] = true;
                if waiver.is_none() && exception.holds_on(self.today) {
                    waiver = Some(exception);
                }
            }
            let so_far = if waiver.is_some() {
                &mut waived
            } else {
                &mut counting
            };
            *so_far += 1;
            if *so_far <= limit {
                findings.push(self.finding(draft, waiver));
            }
        }
        RuleState::Checked {
            found,
            waived,
            listed: waived.min(limit) + counting.min(limit),
        }
    }

    fn finding(&self, draft: Draft, waiver: Option<&ReadyException>) -> Finding {
        let file = self.path.to_string_lossy();
        Finding {
            rule: self.rule.id,
            severity: self.severity,
            command: self.rule.command_for(&file, draft.subject.as_deref()),
            subject: draft.subject.map(|name| Subject {
                demangled: demangle(&name),
                name,
            }),
            detail: draft.detail,
            waiver: waiver.map(|exception| Waiver {
                reason: exception.source.reason.clone(),
                expires: exception.source.expires.clone(),
            }),
        }
    }
}

fn excepts(exception: &ReadyException, draft: &Draft) -> bool {
    let Some(patterns) = &exception.subject else {
        return true;
    };
    draft.subject.as_ref().is_some_and(|subject| {
        patterns.matches(subject)
            || demangle(subject).is_some_and(|readable| patterns.matches(&readable))
    })
}

/// The drafts of the rules about exceptions.
fn about_exceptions(
    rule: &'static str,
    policy: &ReadyPolicy,
    matched: &[bool],
    today: Date,
) -> Vec<Draft> {
    let expired = rule == "policy/expired-exception";
    policy
        .exceptions
        .iter()
        .zip(matched)
        .filter(|(exception, _)| !exception.source.rule.starts_with("pair/"))
        .filter(|(exception, matched)| {
            let over = !exception.holds_on(today);
            if expired {
                over && **matched
            } else {
                !**matched
            }
        })
        .map(|(exception, _)| {
            let source = &exception.source;
            let subject = source.subject.as_ref().map(|s| format!(" {s}"));
            let since = source.expires.clone().unwrap_or_default();
            Draft {
                rule,
                subject: Some(format!("{}{}", source.rule, subject.unwrap_or_default())),
                detail: if expired {
                    format!("held until {since}: {}", source.reason)
                } else {
                    format!("matches nothing: {}", source.reason)
                },
            }
        })
        .collect()
}
