//! The newest write by the clocks of hosts, in the end: what a keyspace promises whose writes have
//! one phase, with the wall clock of whoever takes them for a timestamp (CATS §6.4).
//!
//! Clocks differ, and by no more than is known. So a get must not return what an acknowledged write
//! had replaced that was taken later than any clock can hide: what it returns is of a write that
//! was not over before then, and it is absent only after such a delete. Two writes that are closer
//! to each other may come in either order, and two gets may disagree while a write is under way or
//! nobody knows its outcome. Once the faults have ended all gets of a key return one value, until
//! it is written again.
//!
//! Scans are not judged: a page may show what a delete has replaced by a slower clock.

use crate::explain::{Explanation, act, milliseconds, returned};
use crate::histories::register::{Partition, value_of};
use crate::history::{Completion, Entry, History};
use crate::report::Verdict;
use alloc::boxed::Box;
use alloc::format;
use quorate_kernel::time::{Span, Time};

/// Judges one history of hosts whose wall clocks are no further apart than this.
#[must_use]
pub fn judge(history: &History, apart: Span) -> Verdict {
    let mut partition = Partition::default();
    partition.fill(history);
    if let Some(unjudged) = partition.unjudged() {
        return unjudged;
    }
    let found = (0..partition.keys()).find_map(|key| {
        let of_key = OfKey { history, partition: &partition, key, apart };
        of_key.invented().or_else(|| of_key.replaced()).or_else(|| of_key.disagreed())
    });
    found.map_or(Verdict::Holds, |explanation| Verdict::Violated(Box::new(explanation)))
}

/// The operations of one key.
struct OfKey<'a> {
    history: &'a History,
    partition: &'a Partition,
    key: usize,
    apart: Span,
}

impl<'a> OfKey<'a> {
    fn entries(&self) -> impl DoubleEndedIterator<Item = (u32, &'a Entry)> + Clone {
        let all = self.history.entries();
        self.partition.entries(self.key).iter().map(move |entry| (*entry, &all[*entry as usize]))
    }

    fn gets(&self) -> impl Iterator<Item = (u32, &'a Entry)> + Clone {
        self.entries().filter(|(_, entry)| matches!(entry.completion(), Completion::Value(_)))
    }

    /// Whether the timestamp of one write may be above that of a later one.
    fn may_be_above(&self, write: &Entry, later: &Entry) -> bool {
        let ended = write.completed().filter(|_| write.is_answered());
        let latest =
            ended.map_or(Time(u64::MAX), |ended| Time(ended.0.saturating_add(self.apart.0)));
        latest >= later.invoked()
    }

    /// The writes that a get may have returned.
    fn explain(&self, get: &'a Entry) -> impl Iterator<Item = &'a Entry> {
        self.entries().map(|(_, write)| write).filter(|write| {
            write.may_have_written() && value_of(write) == value_of(get) && write.began < get.ended
        })
    }

    /// A get that returned what nobody had begun to write.
    fn invented(&self) -> Option<Explanation> {
        let is_invented =
            |get: &'a Entry| value_of(get).is_some() && self.explain(get).next().is_none();
        let (index, get) = self.gets().find(|(_, get)| is_invented(get))?;
        let why = format!("{}, and no write of that had begun", returned(get));
        let name = self.partition.name(self.key, self.history);
        let headline = "a get returned what was never written";
        Some(Explanation::new(self.history, name, headline, [index], why))
    }

    /// A get that returned what an acknowledged write had replaced.
    fn replaced(&self) -> Option<Explanation> {
        self.gets().find_map(|(index, get)| {
            let is_over = |(_, write): &(u32, &Entry)| {
                write.operation().is_write() && write.is_answered() && write.ended < get.began
            };
            let (newest, write) =
                self.entries().filter(is_over).max_by_key(|(_, write)| write.began)?;
            if self.explain(get).any(|other| self.may_be_above(other, write)) {
                return None;
            }
            let why = format!(
                "{} after {} had completed at {} ms, and no write of that comes after it by any \
                 clock: they are at most {} ms apart",
                returned(get),
                act(write),
                milliseconds(write.completed().unwrap_or_default()),
                self.apart.0 / 1_000_000
            );
            let name = self.partition.name(self.key, self.history);
            let headline = "a get returned what was replaced";
            Some(Explanation::new(self.history, name, headline, [newest, index], why))
        })
    }

    /// Two gets after all faults that return different values, and no write of the key that might
    /// have come between.
    fn disagreed(&self) -> Option<Explanation> {
        let mut finals = self.gets().filter(|(_, get)| self.history.is_final_get(get));
        let mut one = finals.next()?;
        for two in finals {
            let healed = self.history.healed_order().unwrap_or(0);
            let (begun, ended) = (one.1.began, one.1.ended.max(two.1.ended));
            let is_between = |(_, write): (u32, &Entry)| {
                // What the faults have left open is settled.
                let may_come = match write.is_answered() {
                    true => write.ended > begun,
                    false => write.began > healed,
                };
                write.may_have_written() && may_come && write.began < ended
            };
            if value_of(one.1) != value_of(two.1) && !self.entries().any(is_between) {
                let why = format!(
                    "{}, then {}, after all faults had ended and with no write in between",
                    returned(one.1),
                    returned(two.1)
                );
                let name = self.partition.name(self.key, self.history);
                let headline = "two gets disagree for good";
                return Some(Explanation::new(self.history, name, headline, [one.0, two.0], why));
            }
            one = two;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ClientId, Recorder};
    use alloc::string::{String, ToString};
    use bytes::Bytes;
    use quorate_kernel::operation::Operation;

    const APART: Span = Span(20);

    fn key() -> Bytes {
        Bytes::from_static(b"k")
    }

    fn put(value: &'static str) -> Operation {
        Operation::put(key(), Bytes::from_static(value.as_bytes()))
    }

    fn get() -> Operation {
        Operation::get(key())
    }

    fn value(value: &'static str) -> Completion {
        Completion::Value(Some(Bytes::from_static(value.as_bytes())))
    }

    /// What is wrong with operations of one key and their times, if anything is.
    fn judged(
        operations: &[(Operation, Completion, u64, u64)],
        healed: Option<u64>,
    ) -> Option<String> {
        let mut recorder = Recorder::new();
        for (operation, completion, began, ended) in operations {
            let id = recorder.invoke(ClientId(1), operation.clone(), Time(*began));
            recorder.complete(id, completion.clone(), Time(*ended));
        }
        if let Some(at) = healed {
            recorder.heal(Time(at));
        }
        match judge(&recorder.into_history(), APART) {
            Verdict::Holds => None,
            Verdict::Violated(explanation) => Some(explanation.to_string()),
            Verdict::Unknown { why } => panic!("{why}"),
        }
    }

    #[test]
    fn what_clocks_can_hide_holds() {
        let written = || Completion::Written;
        for (began, told) in [(31, "a"), (30, "a"), (100, "b")] {
            let operations = [
                (put("a"), written(), 1, 11),
                (put("b"), written(), began, began + 2),
                (get(), value(told), 200, 201),
            ];
            assert_eq!(judged(&operations, None), None, "{began}");
        }
        // Nobody knows when it came.
        let operations = [
            (put("a"), Completion::Unknown, 1, 11),
            (put("b"), written(), 100, 102),
            (get(), value("a"), 200, 201),
        ];
        assert_eq!(judged(&operations, None), None);
        // While nothing is known to be there, nothing may be returned.
        assert_eq!(judged(&[(get(), Completion::Value(None), 1, 2)], None), None);
    }

    #[test]
    fn what_no_clock_can_hide_is_condemned() {
        let written = || Completion::Written;
        let operations = [
            (put("a"), written(), 1, 11),
            (put("b"), written(), 32, 40),
            (get(), value("a"), 50, 51),
        ];
        let said = judged(&operations, None).expect("a violation");
        assert!(said.contains("returned what was replaced"), "{said}");
        let operations = [(put("a"), written(), 1, 11), (get(), Completion::Value(None), 50, 51)];
        assert!(judged(&operations, None).is_some(), "no delete explains it");
        let operations = [(put("a"), written(), 60, 70), (get(), value("a"), 50, 51)];
        let said = judged(&operations, None).expect("a violation");
        assert!(said.contains("never written"), "{said}");
        let operations = [(put("a"), written(), 50, 70), (get(), value("a"), 50, 51)];
        assert!(judged(&operations, None).is_none(), "it may have come at once");
    }

    #[test]
    fn gets_agree_in_the_end() {
        let open = || (put("a"), Completion::Unknown, 1, 11);
        let b = || (put("b"), Completion::Written, 12, 14);
        let ends = [(get(), value("a"), 50, 51), (get(), value("b"), 60, 61)];
        let operations = [open(), b(), ends[0].clone(), ends[1].clone()];
        let said = judged(&operations, Some(40)).expect("a violation");
        assert!(said.contains("disagree for good"), "{said}");
        assert_eq!(judged(&operations, Some(55)), None, "one of them alone is final");
        let between = (put("b"), Completion::Written, 52, 53);
        let operations = [open(), b(), between, ends[0].clone(), ends[1].clone()];
        assert_eq!(judged(&operations, Some(40)), None, "it was written in between");
        let long = (get(), value("a"), 50, 90);
        let late = (put("a"), Completion::Written, 70, 80);
        let operations = [open(), b(), long, late, ends[1].clone()];
        assert_eq!(judged(&operations, Some(40)), None, "the longer get may have seen a later one");
        let unknown = (put("b"), Completion::Unknown, 42, 43);
        let operations = [open(), b(), unknown, ends[0].clone(), ends[1].clone()];
        assert_eq!(judged(&operations, Some(40)), None, "nobody knows when it was");
    }
}
