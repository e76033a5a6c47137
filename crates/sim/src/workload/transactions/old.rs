//! Reads that may be old: what they show was done, and was the newest not long before.

use bytes::Bytes;
use quorate_check::history::{Completion, OperationId};
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::collections::{BTreeMap, BTreeSet};

const MS: u64 = 1_000_000;
/// How old what is shown may be, in nanoseconds: a primary that is cut off goes by what it has
/// heard, then beats, and is believed, for 400 ms each; frames take their time, and hosts stand
/// still.
const AGE_MAX: u64 = 3_000 * MS;

/// A value that was put to a key, or that it was deleted.
struct Write {
    of: OperationId,
    value: Option<Bytes>,
    /// Whether it may go by itself.
    expires: bool,
    began: u64,
    /// When its client was told that it is done.
    done: Option<u64>,
}

/// What was written, and what was read that may not be.
#[derive(Default)]
pub struct OldReads {
    of: BTreeMap<Bytes, Vec<Write>>,
    /// Values whose writes have failed, and values that were shown: none is both.
    failed: BTreeSet<Bytes>,
    shown: BTreeSet<Bytes>,
    violation: Option<String>,
}

impl OldReads {
    /// Whether an operation changes nothing, and rests on nothing.
    pub fn only_reads(operation: &Operation) -> bool {
        match operation {
            Operation::Get { .. } => true,
            Operation::Transact { items, .. } => {
                items.iter().all(|item| matches!(item, Item::Get { .. }))
            }
            _ => false,
        }
    }

    /// An operation begins.
    pub fn begin(&mut self, of: OperationId, operation: &Operation, began: u64) {
        let mut note = |key: &Bytes, value: Option<&Bytes>, expires| {
            let write = Write { of, value: value.cloned(), expires, began, done: None };
            self.of.entry(key.clone()).or_default().push(write);
        };
        match operation {
            Operation::Put { key, value, .. } => note(key, Some(value), false),
            Operation::Delete { key, .. } => note(key, None, false),
            Operation::Transact { items, .. } => {
                for item in items {
                    match item {
                        Item::Put { key, value, expiry } => {
                            note(key, Some(value), *expiry != Default::default());
                        }
                        Item::Delete { key } => note(key, None, false),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// An operation has ended that was begun then.
    pub fn end(
        &mut self,
        (of, operation): (OperationId, &Operation),
        completion: &Completion,
        (began, now): (u64, u64),
    ) {
        match completion {
            Completion::Refused | Completion::Unmet { .. } => self.fail(of, operation),
            Completion::Unknown => {}
            _ if Self::only_reads(operation) => self.look(operation, completion, began),
            _ => self.succeed(of, operation, now),
        }
        if let Some(value) = self.failed.intersection(&self.shown).next() {
            let wrong = format!("{value:?} was shown, and its write has failed");
            self.violation.get_or_insert(wrong);
        }
    }

    fn fail(&mut self, of: OperationId, operation: &Operation) {
        for key in operation.keys() {
            let Some(writes) = self.of.get_mut(key) else { continue };
            let gone = writes.extract_if(.., |write| write.of == of);
            self.failed.extend(gone.filter_map(|write| write.value));
        }
    }

    fn succeed(&mut self, of: OperationId, operation: &Operation, now: u64) {
        for key in operation.keys() {
            let writes = self.of.get_mut(key).into_iter().flatten();
            writes.filter(|write| write.of == of).for_each(|write| write.done = Some(now));
        }
    }

    fn look(&mut self, operation: &Operation, completion: &Completion, began: u64) {
        match (operation, completion) {
            (Operation::Get { key, .. }, Completion::Value(value)) => {
                self.see(key, value.as_ref(), began);
            }
            (Operation::Transact { items, .. }, Completion::Transacted(told)) => {
                for (item, told) in items.iter().zip(told) {
                    if let (Item::Get { key }, ItemOutcome::Value(value)) = (item, told) {
                        self.see(key, value.as_ref(), began);
                    }
                }
            }
            _ => {}
        }
    }

    /// Who began to read then was shown a value of a key, or that it has none.
    fn see(&mut self, key: &Bytes, value: Option<&Bytes>, began: u64) {
        let writes = self.of.get(key).map_or(&[][..], Vec::as_slice);
        // Done for so long that nobody may miss it.
        let settled = |write: &&Write| write.done.is_some_and(|done| done + AGE_MAX < began);
        let wrong = match value {
            None => writes.iter().filter(settled).find(|put| {
                let goes = |it: &Write| it.value.is_none() || it.expires;
                let is_gone = |it: &Write| goes(it) && it.done.is_none_or(|at| at > put.began);
                !goes(put) && !writes.iter().any(is_gone)
            }),
            Some(value) => {
                self.shown.insert(value.clone());
                match writes.iter().find(|write| write.value.as_ref() == Some(value)) {
                    Some(Write { done: Some(done), .. }) => {
                        writes.iter().filter(settled).find(|later| later.began > *done)
                    }
                    Some(_) => None,
                    // It has failed, or was never put there.
                    None => {
                        let wrong = format!("{value:?} was read of {key:?}, where it never was");
                        self.violation.get_or_insert(wrong);
                        None
                    }
                }
            }
        };
        if let Some(missed) = wrong {
            let wrong = format!(
                "{value:?} was read of {key:?} by who began at {} ms, and {:?} was done at {} ms",
                began / MS,
                missed.value,
                missed.done.unwrap_or_default() / MS
            );
            self.violation.get_or_insert(wrong);
        }
    }

    /// All that was there is lost.
    pub fn clear(&mut self) {
        self.of.clear();
    }

    /// What was found wrong first.
    pub fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000 * MS;

    fn put(value: &'static str) -> Operation {
        Operation::put(Bytes::from("k"), Bytes::from(value))
    }

    /// Two values are put, each for a second, and whoever begins then is shown this.
    fn shown(value: Option<&'static str>, began: u64) -> Option<String> {
        let mut reads = OldReads::default();
        for (number, value) in [(0, "1"), (1, "2")] {
            let began = number as u64 * 2 * SECOND;
            reads.begin(OperationId(number), &put(value), began);
            let ended = (began, began + SECOND);
            reads.end((OperationId(number), &put(value)), &Completion::Written, ended);
        }
        let get = Operation::get(Bytes::from("k"));
        let told = Completion::Value(value.map(Bytes::from));
        reads.end((OperationId(2), &get), &told, (began, began));
        reads.take_violation()
    }

    #[test]
    fn what_was_not_the_newest_for_long_is_found() {
        assert_eq!(shown(Some("2"), 9 * SECOND), None);
        assert_eq!(shown(Some("1"), 6 * SECOND), None);
        assert!(shown(Some("1"), 6 * SECOND + 1).is_some_and(|wrong| wrong.contains("3000 ms")));
        assert_eq!(shown(None, 4 * SECOND), None);
        assert!(shown(None, 4 * SECOND + 1).is_some_and(|wrong| wrong.contains("1000 ms")));
    }

    #[test]
    fn what_was_never_there_is_found() {
        assert!(shown(Some("3"), 0).is_some_and(|wrong| wrong.contains("never was")));
        let mut reads = OldReads::default();
        reads.begin(OperationId(0), &put("1"), 0);
        let get = Operation::get(Bytes::from("k"));
        let told = Completion::Value(Some(Bytes::from("1")));
        reads.end((OperationId(1), &get), &told, (0, 1));
        assert_eq!(reads.take_violation(), None, "it may be done");
        reads.end((OperationId(0), &put("1")), &Completion::Refused, (0, 2));
        assert!(reads.take_violation().is_some_and(|wrong| wrong.contains("has failed")));
    }
}
