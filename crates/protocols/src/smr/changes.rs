//! What a machine has told lately. Every replica keeps it, so whoever follows the changes goes on
//! at another replica behind the last one that it has.

use alloc::collections::VecDeque;

/// A change and its number: they count from 1 on, over all that a machine has ever told.
pub type Numbered<C> = (u64, C);

/// The last changes. Volatile: after a restart, or a copy, it begins with what comes next.
#[derive(Clone, Debug)]
pub struct Changes<C> {
    /// Each with about how many bytes it and all before it take.
    kept: VecDeque<(C, u64)>,
    /// How many those take that are kept no more, and all.
    forgotten: u64,
    total: u64,
    /// The number of the last one.
    last: u64,
}

/// The most that are kept.
const KEPT: usize = 64 * 1024;
/// About the most bytes of them. The last one is kept however long it is.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;

impl<C: Clone> Changes<C> {
    /// None is known up to this one.
    pub(crate) fn new(last: u64) -> Changes<C> {
        Changes { kept: VecDeque::new(), forgotten: 0, total: 0, last }
    }

    /// The next one, and about how many bytes it takes.
    pub(crate) fn push(&mut self, change: C, bytes: usize) {
        self.last += 1;
        self.total += bytes as u64;
        self.kept.push_back((change, self.total));
        let bytes = |it: &Self| it.total - it.forgotten;
        let is_full = |it: &Self| it.kept.len() > KEPT || bytes(it) > KEPT_BYTES;
        while is_full(self)
            && self.kept.len() > 1
            && let Some((_, total)) = self.kept.pop_front()
        {
            self.forgotten = total;
        }
    }

    /// The number of the last one.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether half of what is kept is behind one, by number or by bytes, or more: soon it is not
    /// known any more what that was.
    #[must_use]
    pub fn is_aging(&self, seen: u64) -> bool {
        let count = usize::try_from(self.last.saturating_sub(seen)).unwrap_or(usize::MAX);
        let Some(first) = self.kept.len().checked_sub(count) else { return true };
        let before = first.checked_sub(1).map_or(self.forgotten, |at| self.kept[at].1);
        count > KEPT / 2 || self.total - before > KEPT_BYTES / 2
    }

    /// Those behind one; none if that is not known any more, or was never told.
    #[must_use]
    pub fn after(&self, seen: u64) -> Option<impl Iterator<Item = Numbered<&C>>> {
        let count = usize::try_from(self.last.checked_sub(seen)?).ok()?;
        let skipped = self.kept.len().checked_sub(count)?;
        Some((seen + 1..).zip(self.kept.iter().skip(skipped).map(|(change, _)| change)))
    }
}
