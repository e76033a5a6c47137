//! Counters: numbers that clients add to, each addition told the sum.
//!
//! For keys to which nothing but one and the same positive number is added, which says all there is
//! to say of atomic additions without a search:
//!
//! - no two additions were told the same sum: neither was lost, and none was done twice;
//! - an addition that began after another had ended was told more;
//! - a sum counts no addition that had not begun when it was told, and all that had ended before
//!   its own began: so a read must lie between both, too.

use crate::explain::Explanation;
use crate::history::Completion;
use crate::history::{Entry, History};
use crate::report::Verdict;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed};
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::{Item, ItemOutcome};

/// What one operation says of one counter.
struct Seen<'a> {
    entry: &'a Entry,
    /// Which operation of the history it is.
    at: u32,
    /// Whether it adds, or only reads.
    adds: bool,
    /// The sum it was told, in additions; none if nobody knows what became of it.
    told: Option<i64>,
}

impl Seen<'_> {
    /// Whether somebody was told that it was done.
    fn is_done(&self) -> bool {
        self.told.is_some() || *self.entry.completion() == Completion::Committed
    }
}

/// Whether some operation of a history adds to a number.
#[must_use]
pub fn has_some(history: &History) -> bool {
    history.entries().iter().any(|entry| added(entry).is_some())
}

/// The key and the number of an operation that is one addition.
fn added(entry: &Entry) -> Option<(&Bytes, i64)> {
    match entry.operation() {
        Operation::Transact { items, .. } => match &items[..] {
            [Item::Change { key, change: Change::Add(number) }] => Some((key, *number)),
            _ => None,
        },
        _ => None,
    }
}

/// What an item has read.
fn read_one<'a>(item: &'a Item, told: &'a ItemOutcome) -> Option<(&'a Bytes, Option<&'a Bytes>)> {
    match (item, told) {
        (Item::Get { key }, ItemOutcome::Value(value)) => Some((key, value.as_ref())),
        _ => None,
    }
}

/// The keys that an operation has read, each with its value.
fn read(entry: &Entry) -> Vec<(&Bytes, Option<&Bytes>)> {
    match (entry.operation(), entry.completion()) {
        (Operation::Get { key, .. }, Completion::Value(value)) => vec![(key, value.as_ref())],
        (Operation::Transact { items, .. }, Completion::Transacted(told)) => {
            let both = items.iter().zip(told);
            both.filter_map(|(item, told)| read_one(item, told)).collect()
        }
        _ => Vec::new(),
    }
}

/// Judges a history in which clients add one number to counters, one at a time, and read them.
#[must_use]
pub fn judge(history: &History) -> Verdict {
    let mut number = None;
    let mut counters: BTreeMap<&Bytes, Vec<Seen<'_>>> = BTreeMap::new();
    let broken = |key: &Bytes, at: u32, why: &str| violated(history, key, [at], why);
    for (at, entry) in (0..).zip(history.entries()) {
        if *entry.completion() == Completion::Refused {
            continue;
        }
        if let Some((key, by)) = added(entry) {
            if *number.get_or_insert(by) != by || by <= 0 {
                return unknown("additions are not all of one positive number");
            }
            let told = match entry.completion() {
                Completion::Transacted(told) => match told[..] {
                    [ItemOutcome::Changed(Changed::Integer(sum))] => Some(sum),
                    _ => return broken(key, at, "an addition to a counter was not done"),
                },
                _ => None,
            };
            counters.entry(key).or_default().push(Seen { entry, at, adds: true, told });
        } else if entry.operation().is_write() {
            return unknown("something else than additions was written");
        }
        for (key, value) in read(entry) {
            let text = value.map_or(Ok("0"), |value| core::str::from_utf8(value));
            let Some(sum) = text.ok().and_then(|text| text.parse().ok()) else {
                return broken(key, at, "a counter has a value that is no number");
            };
            counters.entry(key).or_default().push(Seen { entry, at, adds: false, told: Some(sum) });
        }
    }
    let number = number.unwrap_or(1);
    let wrong = counters.into_iter().find_map(|(key, seen)| Some((key, counter(&seen, number)?)));
    wrong.map_or(Verdict::Holds, |(key, (entries, why))| violated(history, key, entries, &why))
}

/// What is wrong with one counter: the operations that show it, and why.
fn counter(seen: &[Seen<'_>], number: i64) -> Option<(Vec<u32>, String)> {
    let mut told: BTreeMap<i64, u32> = BTreeMap::new();
    for it in seen {
        let Some(sum) = it.told else { continue };
        let count = sum / number;
        let additions = || seen.iter().filter(|other| other.adds);
        let was_done = |other: &&Seen<'_>| other.is_done() && other.entry.ended < it.entry.began;
        let was_begun = |other: &&Seen<'_>| other.entry.began < it.entry.ended;
        let least = additions().filter(was_done).count() as i64 + i64::from(it.adds);
        let most = additions().filter(was_begun).count() as i64;
        if count * number != sum || count < least || count > most {
            let why = format!("it was told {sum}, which should be {least} to {most} additions");
            return Some((vec![it.at], why));
        }
        if it.adds
            && let Some(twin) = told.insert(sum, it.at)
        {
            return Some((vec![twin, it.at], "both additions were told the same sum".to_string()));
        }
    }
    // Sums grow with time: for each, the highest that was told before it began.
    let known = seen.iter().filter_map(|it| Some((it, it.told?)));
    let mut by_end: Vec<(&Seen<'_>, i64)> = known.collect();
    let mut by_start = by_end.clone();
    by_end.sort_by_key(|(it, _)| it.entry.ended);
    by_start.sort_by_key(|(it, _)| it.entry.began);
    let (mut ended, mut highest) = (by_end.into_iter().peekable(), None);
    for (it, sum) in by_start {
        while let Some(other) = ended.next_if(|(other, _)| other.entry.ended < it.entry.began) {
            highest = highest.max(Some((other.1, other.0.at)));
        }
        // An addition adds to all that was told before.
        let least = |earlier: i64| earlier + i64::from(it.adds);
        if let Some((earlier, at)) = highest.filter(|(earlier, _)| sum < least(*earlier)) {
            let why = format!("{sum} was told after {earlier} had been told");
            return Some((vec![at, it.at], why));
        }
    }
    None
}

fn unknown(why: &str) -> Verdict {
    Verdict::Unknown { why: why.to_string() }
}

fn violated(
    history: &History,
    key: &Bytes,
    entries: impl IntoIterator<Item = u32>,
    why: &str,
) -> Verdict {
    let headline = "no order of additions explains these operations";
    let why = why.to_string();
    Verdict::Violated(Box::new(Explanation::new(history, key, headline, entries, why)))
}
