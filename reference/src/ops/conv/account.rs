//! The numbers behind the bound of one sum.

use super::{Convolution, Direction};
use crate::ops::account::Figures;

/// Q comes from squares summed in f32; the bound enlarges it by this.
const MARGIN: f64 = 1.02;

impl Convolution<'_> {
    /// K, Q, S and the summands of the uncertainty of element `index`. What transforms add, which is of
    /// the whole tensor, is not among them.
    pub fn account(&self, index: usize) -> Figures {
        let index = self.straight_index(index);
        let (mut terms, mut y, mut squares, mut s, mut carried) = (0.0, 0.0, 0.0, 0.0, 0.0);
        self.geometry.terms(self.direction, index, |a, b| {
            let b = self.straight_tap(b);
            let (e_a, e_b) = (self.first.error_at(a), self.second.error_at(b));
            let (a, b) = (self.first.value[a], self.second.value[b]);
            terms += 1.0;
            y += a * b;
            squares += a * a * (b * b);
            s += (a * b).abs();
            carried += a.abs() * e_b + e_a * (b.abs() + e_b);
        });
        let q = squares.sqrt();
        let mut figures = Figures::default();
        figures.add("K, products", terms);
        figures.add("Q = √Σ(aᵢbᵢ)²", q);
        figures.add("S = Σ|aᵢbᵢ|", s);
        figures.add("u of the accumulator", self.bound.roundoff());
        let bound = &self.bound;
        if terms > 0.0 && bound.grows_linearly(terms, y, q, s) {
            figures.part(
                "sum, one-signed and even: K·u·S",
                bound.worst(terms, y, q, s),
            );
        } else if terms > 0.0 {
            let part = bound.random(terms, y, MARGIN * q);
            figures.part(
                format!("sum: {}·u·√K·(|y| + {MARGIN}·Q)", bound.factor()),
                part,
            );
        }
        if self.rounds_inputs {
            figures.part(
                "operands rounded when read: 8·u·Q",
                8.0 * bound.roundoff() * q,
            );
        }
        figures.part("uncertain operands: Σ|a|·e_b + Σe_a·(|b| + e_b)", carried);
        figures
    }

    /// The element of a straight filter's gradient that a flipped one has at `index`.
    fn straight_index(&self, index: usize) -> usize {
        match self.direction {
            Direction::Wgrad => self.turned(index),
            _ => index,
        }
    }

    /// Where a flipped filter has the tap that a straight one has at `index`.
    fn straight_tap(&self, index: usize) -> usize {
        match self.direction {
            Direction::Wgrad => index,
            _ => self.turned(index),
        }
    }

    fn turned(&self, index: usize) -> usize {
        if !self.geometry.flipped {
            return index;
        }
        let window = self.geometry.window();
        let tap = index % window;
        index - tap + (window - 1 - tap)
    }
}
