//! `FLUSHDB`: keys are listed page by page, and those of a page are deleted before the next one.
//!
//! It is no operation of one moment, as in Redis: whoever reads meanwhile may see some keys gone
//! and others not, and what is written meanwhile may be deleted or stay. All that was there when it
//! began is deleted when it is answered.

use super::PAGE_KEYS;
use crate::resp::error;
use crate::resp::reply::CommandReply;
use crate::resp::single::MISMATCH;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Operation, Outcome};

/// A keyspace that is being emptied.
#[derive(Debug)]
pub(crate) struct Flush {
    /// Where the next page begins; none behind the last one.
    from: Option<Cursor>,
    /// The keys of this page, until they are asked to be deleted.
    keys: Vec<Bytes>,
    held: usize,
    /// How many operations have not ended.
    running: usize,
    /// Whether a key was deleted, or may have been.
    has_changed: bool,
    /// Why a key is not deleted.
    error: Option<String>,
}

/// What is told once something may be gone: the first word of any other refusal says that nothing
/// was changed.
const IN_PART: &str = "UNKNOWNOUTCOME not every key was surely deleted; send FLUSHDB again";

impl Flush {
    /// Before the first page.
    pub(crate) fn new() -> Flush {
        let from = Some(Cursor::default());
        Flush { from, keys: Vec::new(), held: 0, running: 0, has_changed: false, error: None }
    }

    /// What is to be done next.
    pub(crate) fn operations(&mut self) -> Vec<Operation> {
        let operations: Vec<Operation> = match &self.from {
            Some(from) if self.keys.is_empty() => {
                vec![Operation::Scan { from: from.clone(), limit: PAGE_KEYS }]
            }
            _ => {
                // A page may have a few keys more than were asked for.
                let count = self.keys.len().min(PAGE_KEYS as usize);
                self.keys.drain(..count).map(Operation::delete).collect()
            }
        };
        self.held = self.keys.iter().map(Bytes::len).sum();
        self.running = operations.len();
        operations
    }

    /// How many bytes of keys it holds.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// One operation has ended; the reply, or `None` if there is more to do.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome) -> Option<CommandReply> {
        self.running = self.running.saturating_sub(1);
        match outcome {
            Outcome::Page { keys, next } => {
                // A cursor that does not rise would never end.
                self.from = next.filter(|next| self.from.as_ref().is_none_or(|from| next > from));
                self.held = keys.iter().map(Bytes::len).sum();
                self.keys = keys;
            }
            Outcome::Deleted { .. } => self.has_changed = true,
            Outcome::Refused(refusal) => {
                self.has_changed |= refusal.may_have_applied();
                self.error.get_or_insert_with(|| error::refusal(&refusal));
            }
            _ => _ = self.error.get_or_insert_with(|| String::from(MISMATCH)),
        }
        if self.running > 0 {
            return None;
        }
        let has_more = self.from.is_some() || !self.keys.is_empty();
        match self.error.take() {
            // A token would tell of one key alone.
            Some(_) if self.has_changed => Some(CommandReply::Error(IN_PART.into())),
            Some(error) => Some(CommandReply::Error(error)),
            None if has_more => None,
            None => Some(CommandReply::OK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::operation::Refusal;

    fn page(keys: &[&'static str], next: Option<u64>) -> Outcome {
        let keys = keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        Outcome::Page { keys, next: next.map(Cursor::at) }
    }

    fn scan(from: u64) -> Vec<Operation> {
        vec![Operation::Scan { from: Cursor::at(from), limit: PAGE_KEYS }]
    }

    #[test]
    fn each_page_is_deleted_before_the_next_is_listed() {
        let key = |text: &'static str| Bytes::from_static(text.as_bytes());
        let mut flush = Flush::new();
        assert_eq!(flush.operations(), scan(0));
        assert_eq!(flush.on_outcome(page(&["a", "bc"], Some(9))), None);
        assert_eq!(flush.held(), 3);
        assert_eq!(flush.operations(), ["a", "bc"].map(|it| Operation::delete(key(it))));
        assert_eq!(flush.on_outcome(Outcome::deleted(true)), None);
        assert_eq!(flush.on_outcome(Outcome::deleted(false)), None);
        assert_eq!(flush.operations(), scan(9));
        assert_eq!(flush.on_outcome(page(&[], None)), Some(CommandReply::OK));

        let most = PAGE_KEYS as usize;
        let mut flush = Flush::new();
        flush.operations();
        let keys = vec![key("a"); most + 1];
        assert_eq!(flush.on_outcome(Outcome::Page { keys, next: None }), None);
        assert_eq!(flush.operations().len(), most);
        assert!((0..most).all(|_| flush.on_outcome(Outcome::deleted(true)).is_none()));
        assert_eq!(flush.operations(), [Operation::delete(key("a"))]);
        assert_eq!(flush.on_outcome(Outcome::deleted(true)), Some(CommandReply::OK));
    }

    #[test]
    fn what_is_not_deleted_is_told_when_all_of_the_page_have_ended() {
        let mut flush = Flush::new();
        flush.operations();
        assert_eq!(flush.on_outcome(page(&["a", "b"], Some(9))), None);
        flush.operations();
        assert_eq!(flush.on_outcome(Outcome::Refused(Refusal::NoRoute)), None);
        let told = flush.on_outcome(Outcome::Refused(Refusal::NoRoute));
        assert_eq!(told, Some(CommandReply::Error(error::refusal(&Refusal::NoRoute))));
    }

    #[test]
    fn nobody_is_told_that_nothing_was_changed_once_something_may_be_gone() {
        let in_part = || Some(CommandReply::Error(IN_PART.into()));
        let begun = || {
            let mut flush = Flush::new();
            flush.operations();
            assert_eq!(flush.on_outcome(page(&["a", "b"], Some(9))), None);
            flush.operations();
            flush
        };
        let refused = |refusal| Outcome::Refused(refusal);
        // One key of a page is gone, or may be.
        for outcome in [Outcome::deleted(true), refused(Refusal::OutcomeUnknown)] {
            let mut flush = begun();
            assert_eq!(flush.on_outcome(refused(Refusal::NoRoute)), None);
            assert_eq!(flush.on_outcome(outcome), in_part());
        }
        // A page before is gone.
        let mut flush = begun();
        assert_eq!(flush.on_outcome(Outcome::deleted(true)), None);
        assert_eq!(flush.on_outcome(Outcome::deleted(true)), None);
        flush.operations();
        assert_eq!(flush.on_outcome(refused(Refusal::NoRoute)), in_part());
    }
}
