//! What a machine has told lately. Every replica keeps it, so whoever follows the changes goes on
//! at another replica behind the last one that it has.

use alloc::collections::VecDeque;

/// A change and its number: they count from 1 on, over all that a machine has ever told.
pub type Numbered<C> = (u64, C);

/// The last changes. Volatile: after a restart, or a copy, it begins with what comes next.
#[derive(Clone, Debug)]
pub struct Changes<C> {
    kept: VecDeque<C>,
    /// The number of the last one.
    last: u64,
}

/// How many are kept.
const KEPT: usize = 64 * 1024;

impl<C: Clone> Changes<C> {
    /// None is known up to this one.
    pub(super) fn new(last: u64) -> Changes<C> {
        Changes { kept: VecDeque::new(), last }
    }

    pub(super) fn push(&mut self, change: C) {
        self.last += 1;
        self.kept.push_back(change);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// The number of the last one.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Those behind one; none if that is not known any more, or was never told.
    #[must_use]
    pub fn after(&self, seen: u64) -> Option<impl Iterator<Item = Numbered<&C>>> {
        let count = usize::try_from(self.last.checked_sub(seen)?).ok()?;
        let skipped = self.kept.len().checked_sub(count)?;
        Some((seen + 1..).zip(self.kept.iter().skip(skipped)))
    }
}
