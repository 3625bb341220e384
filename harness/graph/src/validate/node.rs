//! What the checks of all kinds of nodes share.

use super::problem::{Problem, list};
use crate::model::Tensor;
use std::collections::HashMap;

/// A node under check.
pub(super) struct NodeCheck<'g, 'p> {
    index: usize,
    by_uid: &'p HashMap<i64, &'g Tensor>,
    problems: &'p mut Vec<Problem>,
}

impl<'g, 'p> NodeCheck<'g, 'p> {
    pub(super) fn new(
        index: usize,
        by_uid: &'p HashMap<i64, &'g Tensor>,
        problems: &'p mut Vec<Problem>,
    ) -> Self {
        Self {
            index,
            by_uid,
            problems,
        }
    }

    pub(super) fn problem(
        &mut self,
        field: &'static str,
        expected: impl Into<String>,
        seen: impl Into<String>,
        advice: &'static str,
    ) {
        self.problems.push(Problem {
            node: Some(self.index),
            tensor: None,
            field,
            expected: expected.into(),
            seen: seen.into(),
            advice,
        });
    }

    pub(super) fn tensor(&self, uid: i64) -> Option<&'g Tensor> {
        self.by_uid.get(&uid).copied()
    }

    /// The extents of a tensor.
    pub(super) fn dims(&self, uid: i64) -> Option<&'g [i64]> {
        self.tensor(uid).map(|tensor| tensor.dims.as_slice())
    }

    /// Wants a tensor to have these extents.
    pub(super) fn expect_dims(
        &mut self,
        field: &'static str,
        uid: i64,
        expected: &[i64],
    ) -> Option<()> {
        let dims = self.dims(uid)?;
        if dims != expected {
            self.problem(
                field,
                format!("extents {}", list(expected)),
                list(dims),
                "correct its dims",
            );
        }
        Some(())
    }

    /// [`NodeCheck::expect_dims`] for a tensor that may be left out.
    pub(super) fn expect_dims_if(
        &mut self,
        field: &'static str,
        uid: Option<i64>,
        expected: &[i64],
    ) -> Option<()> {
        uid.map_or(Some(()), |uid| self.expect_dims(field, uid, expected))
    }

    /// Wants a tensor to have one element.
    pub(super) fn expect_scalar(&mut self, field: &'static str, uid: i64) -> Option<()> {
        let tensor = self.tensor(uid)?;
        if tensor.element_count() != Some(1) {
            let seen = format!("extents {}", list(&tensor.dims));
            self.problem(field, "one element", seen, "give it dims [1]");
        }
        Some(())
    }

    /// Wants at least this many axes; whether there are.
    pub(super) fn expect_rank(&mut self, field: &'static str, dims: &[i64], least: usize) -> bool {
        if dims.len() < least {
            self.problem(
                field,
                format!("at least {least} axes"),
                format!("extents {}", list(dims)),
                "give it the axes N, C and spatial ones",
            );
        }
        dims.len() >= least
    }

    /// Wants all or none of some optional tensors.
    pub(super) fn expect_together(&mut self, fields: &'static str, present: &[bool]) {
        let given = present.iter().filter(|present| **present).count();
        if given != 0 && given != present.len() {
            let seen = format!("{given} of {}", present.len());
            self.problem(
                fields,
                "all of them or none",
                seen,
                "add the others or drop them",
            );
        }
    }
}
