//! The numbers behind the bound of one pointwise result: every step of the textbook formula.

use std::cell::RefCell;

use super::Pointwise;
use super::broadcast::Broadcast;
use super::spread::spread;
use super::textbook::{self, Function, Machine, Rounding, Tracked};
use crate::ops::account::{Figure, Figures};

/// Carries out a formula and keeps what each step gave.
struct Telling<'a> {
    rounding: Rounding<'a>,
    steps: RefCell<Vec<Figure>>,
}

impl Telling<'_> {
    fn tell(&self, what: &str, result: Tracked) -> Tracked {
        let mut steps = self.steps.borrow_mut();
        let number = steps.len() + 1;
        steps.push(Figure {
            name: format!("step {number}: {what}"),
            value: result.value,
            error: Some(result.error()),
        });
        result
    }
}

impl Machine for Telling<'_> {
    type Number = Tracked;

    fn exact(&self, x: f64) -> Tracked {
        self.rounding.exact(x)
    }

    fn constant(&self, x: f64) -> Tracked {
        self.tell("a rounded constant", self.rounding.constant(x))
    }

    fn add(&self, a: Tracked, b: Tracked) -> Tracked {
        self.tell("sum", self.rounding.add(a, b))
    }

    fn mul(&self, a: Tracked, b: Tracked) -> Tracked {
        self.tell("product", self.rounding.mul(a, b))
    }

    fn div(&self, a: Tracked, b: Tracked) -> Tracked {
        self.tell("quotient", self.rounding.div(a, b))
    }

    fn call(&self, function: Function, a: Tracked) -> Tracked {
        let name = format!("{function:?}").to_lowercase();
        self.tell(&name, self.rounding.call(function, a))
    }

    fn scale(&self, a: Tracked, by: f64) -> Tracked {
        self.rounding.scale(a, by)
    }
}

impl Pointwise<'_> {
    /// The operands, the steps of the formula with what each may be off by, and the summands of the
    /// uncertainty of element `index`.
    ///
    /// # Errors
    /// As [`Pointwise::run`].
    pub fn account(&self, index: usize) -> Result<Figures, String> {
        let dims: Vec<&[i64]> = self.operands.iter().map(|operand| operand.dims).collect();
        let broadcast = Broadcast::new(self.output, &dims)?;
        let mut figures = Figures::default();
        broadcast.runs(index..index + 1, |run| {
            let operands = self.intervals(&run, 0);
            for (place, operand) in operands.iter().enumerate().take(self.operands.len()) {
                figures.add_uncertain(format!("operand {place}"), operand.at, operand.error);
            }
            figures.add("u of the compute type", self.precision.roundoff);
            let machine = Telling {
                rounding: Rounding {
                    precision: &self.precision,
                    functions: self.functions,
                },
                steps: RefCell::default(),
            };
            let [a, b, _] = operands;
            let result = textbook::run(&machine, self.mode, &self.parameters, a.at, b.at);
            figures.figures.extend(machine.steps.into_inner());
            if result.is_none() {
                figures.add("steps that round", 0.0);
            }
            let mut value = [0.0];
            self.values(&run, &mut value);
            let exact = operands.map(|operand| super::Interval {
                error: 0.0,
                ..operand
            });
            let steps = self.doubt(exact, value[0]).error;
            figures.part("steps of the formula: Σ |∂y/∂t|·n·u·|t|", steps);
            let uncertain = operands.iter().any(|operand| operand.error > 0.0);
            if uncertain {
                let all = self.doubt(operands, value[0]).error;
                figures.part("uncertain operands, through the function", all - steps);
                if spread(self.mode, &self.parameters, operands).undecided {
                    figures.add("undecided at a kink or step", 1.0);
                }
            }
        });
        Ok(figures)
    }
}
