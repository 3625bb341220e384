//! Criteria that hipDNN's own test configuration asks for, by case: they take the place of the
//! criterion of the run, and the run says of each how many cases it judged.

use std::sync::atomic::{AtomicU64, Ordering};

use super::document::Origin;
use super::globs::Globs;

/// Entries in the order of the files; of each sort the last that matches wins.
#[derive(Debug, Default)]
pub struct Overrides {
    tolerances: Vec<Entry<Tolerance>>,
    choices: Vec<Entry<Choice>>,
}

/// Absolute and relative tolerance; what is absent comes from the table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Absolute.
    pub atol: Option<f64>,
    /// Relative.
    pub rtol: Option<f64>,
}

/// A criterion for some outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The criterion.
    pub validator: Validator,
    /// Names of outputs; all where empty.
    pub tensors: Vec<String>,
}

/// A criterion by hipDNN's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Validator {
    /// `|got - y| <= atol + rtol·|y|`.
    Allclose,
    /// Relative root mean square with this threshold, or the table's.
    Rms(Option<f64>),
}

/// What the overrides say of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// The criterion.
    pub validator: Validator,
    /// Numbers of [`Validator::Allclose`].
    pub tolerance: Tolerance,
    /// The entries that say so, for people.
    pub because: String,
}

#[derive(Debug)]
struct Entry<T> {
    origin: Origin,
    globs: Globs,
    what: T,
    judged: AtomicU64,
}

/// A criterion, and the entries that ask for it.
type Found<'a> = (
    Validator,
    Option<&'a Entry<Choice>>,
    Option<&'a Entry<Tolerance>>,
);

impl Overrides {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tolerances.is_empty() && self.choices.is_empty()
    }

    /// A tolerance more.
    pub(super) fn push_tolerance(&mut self, origin: Origin, globs: Globs, what: Tolerance) {
        self.tolerances.push(Entry::new(origin, globs, what));
    }

    /// A criterion more.
    pub(super) fn push_choice(&mut self, origin: Origin, globs: Globs, what: Choice) {
        self.choices.push(Entry::new(origin, globs, what));
    }

    /// More entries behind these.
    pub fn extend(&mut self, others: Self) {
        self.tolerances.extend(others.tolerances);
        self.choices.extend(others.choices);
    }

    /// The entries for an output of a case, and the criterion that they ask for.
    fn found(&self, case: &str, tensor: &str) -> Option<Found<'_>> {
        let meant = |choice: &Choice| {
            choice.tensors.is_empty() || choice.tensors.iter().any(|name| name == tensor)
        };
        let tolerance = last(&self.tolerances, case, |_| true);
        let choice = last(&self.choices, case, meant);
        let validator = match (choice, tolerance) {
            (Some(choice), _) => choice.what.validator,
            (None, Some(_)) => Validator::Allclose,
            (None, None) => return None,
        };
        // A root mean square has no use for a tolerance.
        let tolerance = tolerance.filter(|_| validator == Validator::Allclose);
        Some((validator, choice, tolerance))
    }

    /// An output of a case has been judged as its ruling says.
    pub fn count(&self, case: &str, tensor: &str) {
        let Some((_, choice, tolerance)) = self.found(case, tensor) else {
            return;
        };
        let counts = [choice.map(|e| &e.judged), tolerance.map(|e| &e.judged)];
        for count in counts.into_iter().flatten() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What is said of an output of a case; `None` where nothing is.
    pub fn ruling(&self, case: &str, tensor: &str) -> Option<Ruling> {
        let (validator, choice, tolerance) = self.found(case, tensor)?;
        let origins = choice.map(|e| &e.origin).into_iter();
        let origins: Vec<String> = origins
            .chain(tolerance.map(|e| &e.origin))
            .map(ToString::to_string)
            .collect();
        Some(Ruling {
            validator,
            tolerance: tolerance.map(|e| e.what).unwrap_or_default(),
            because: origins.join(" and "),
        })
    }

    /// What is to be said of each entry once every case has run. `whole` says that the run took
    /// whole suites: in a part an entry that judged nothing means nothing.
    pub fn remarks(&self, whole: bool) -> Vec<String> {
        let tolerances = self.tolerances.iter().map(|e| e.remark("tolerance", whole));
        let choices = self.choices.iter().map(|e| e.remark("validator", whole));
        tolerances.chain(choices).flatten().collect()
    }
}

impl<T> Entry<T> {
    fn new(origin: Origin, globs: Globs, what: T) -> Self {
        Self {
            origin,
            globs,
            what,
            judged: AtomicU64::new(0),
        }
    }

    fn remark(&self, sort: &str, whole: bool) -> Option<String> {
        let Self { origin, globs, .. } = self;
        match self.judged.load(Ordering::Relaxed) {
            0 if whole => Some(format!(
                "the {sort} override at {origin} judged nothing: its filters {globs} are held \
                 against case ids, where hipDNN's own names of tests mean nothing; or no table has a \
                 number for what they match"
            )),
            0 => None,
            1 => Some(format!(
                "the {sort} override at {origin} judged 1 output instead of the bound"
            )),
            n => Some(format!(
                "the {sort} override at {origin} judged {n} outputs instead of the bound"
            )),
        }
    }
}

fn last<'a, T>(
    entries: &'a [Entry<T>],
    case: &str,
    meant: impl Fn(&T) -> bool,
) -> Option<&'a Entry<T>> {
    let mut entries = entries.iter().rev();
    entries.find(|entry| entry.globs.matches(case) && meant(&entry.what))
}
