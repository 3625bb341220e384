//! The numbers behind one element's bound.

/// A number that goes into a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is: `K`, `Q`, `e of the mean`.
    pub name: String,
    /// The number.
    pub value: f64,
    /// How far a correct engine may be from it, where it is an intermediate result.
    pub error: Option<f64>,
}

/// The numbers of one element, and the summands of its uncertainty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// What the summands are made of.
    pub figures: Vec<Figure>,
    /// What adds up to the uncertainty before the final rounding.
    pub parts: Vec<Figure>,
}

impl Figures {
    /// A number.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64) {
        self.figures.push(Figure {
            name: name.into(),
            value,
            error: None,
        });
    }

    /// A number that an engine may get wrong by `error`.
    pub(crate) fn add_uncertain(&mut self, name: impl Into<String>, value: f64, error: f64) {
        self.figures.push(Figure {
            name: name.into(),
            value,
            error: Some(error),
        });
    }

    /// A summand; one that is 0 is not worth a line.
    pub(crate) fn part(&mut self, name: impl Into<String>, value: f64) {
        if value != 0.0 {
            self.parts.push(Figure {
                name: name.into(),
                value,
                error: None,
            });
        }
    }

    /// The sum of the summands.
    pub fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}
