//! The NEEDED entries of a library by name, for decisions that need no whole walk.

use super::walk::Closure;

impl Closure {
    /// The NEEDED entries of the object that answers to a name: what
    /// [`crate::memory_kind_evidence`] asks for.
    #[must_use]
    pub fn needed_of(&self, name: &str) -> Option<Vec<String>> {
        let index = self.scope.iter().find_map(|&index| {
            let needed = &self.objects[index].needed;
            let entry = needed.iter().find(|(known, _)| known == name);
            entry.and_then(|(_, answer)| *answer)
        })?;
        let names = self.objects[index].needed.iter();
        Some(names.map(|(name, _)| name.clone()).collect())
    }
}
