//! What a machine has told lately. Every replica keeps it, so whoever follows the changes goes on
//! at another replica behind the last one that it has.

use alloc::collections::VecDeque;

/// A change and its number: they count from 1 on, over all that a machine has ever told.
pub type Numbered<C> = (u64, C);

/// The last changes. Volatile: after a restart, or a copy, it begins with what comes next.
#[derive(Clone, Debug)]
pub struct Changes<C> {
    /// Each with about how many bytes it takes.
    kept: VecDeque<(C, usize)>,
    bytes: usize,
    /// The number of the last one.
    last: u64,
}

/// The most that are kept.
const KEPT: usize = 64 * 1024;
/// About the most bytes of them. The last one is kept however long it is.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

impl<C: Clone> Changes<C> {
    /// None is known up to this one.
    pub(crate) fn new(last: u64) -> Changes<C> {
        Changes { kept: VecDeque::new(), bytes: 0, last }
    }

    /// The next one, and about how many bytes it takes.
    pub(crate) fn push(&mut self, change: C, bytes: usize) {
        self.last += 1;
        self.bytes += bytes;
        self.kept.push_back((change, bytes));
        let is_full = |it: &Self| it.kept.len() > KEPT || it.bytes > KEPT_BYTES;
        while is_full(self)
            && self.kept.len() > 1
            && let Some((_, bytes)) = self.kept.pop_front()
        {
            self.bytes -= bytes;
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
        Some((seen + 1..).zip(self.kept.iter().skip(skipped).map(|(change, _)| change)))
    }
}
