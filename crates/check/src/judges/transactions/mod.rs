//! Strict serializability: each operation, however many keys it is about, seems to happen at one
//! moment between its invocation and its completion.
//!
//! That is linearizability of one object, the map of all keys, so the judge asks as the one of
//! single keys does: is there an order that respects time and gives each operation what it was
//! told? Operations on one key are transactions of one item. Keys that no operation binds together
//! are judged apart, since linearizability is local.
//!
//! - A check of a transaction that was done held, and a get in it read what was there then, or what
//!   an item before it had written. A delete in it says truly whether the key had a value.
//! - A transaction whose check did not hold changed nothing, and read that it did not hold. If
//!   several do not hold, any of them may be named.
//! - A write whose outcome is unknown may happen at any time after its invocation, all of it, or
//!   never; it never happens where a check of it does not hold.
//! - A refused operation changed nothing. One that only reads, and has no answer, says nothing.
//!
//! | module | what it holds |
//! |---|---|
//! | `step` | an operation as what it needs of keys and what it leaves there |
//! | `parts` | a history taken apart into sets of keys that have nothing to do with each other |
//! | `open` | which operations of unknown outcome matter, and which must have happened |
//! | `search` | the search for an order |
//! | `reduce` | few operations that contradict each other |
//!
//! Where each write has a value of its own, as those of the simulator's clients have, histories of
//! hundreds of operations are decided in some ten milliseconds. Where values come again and the
//! outcome of many writes is unknown, the search may be cut off. Listings are not judged here, nor
//! changes in place: of those whose outcome is unknown nobody can say what they left.

mod open;
mod parts;
mod reduce;
mod search;
mod step;

use crate::explain::{Explanation, shown};
use crate::history::Completion;
use crate::history::{Entry, History};
use crate::report::Verdict;
use crate::search::orders::Finding;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use parts::Part;
use quorate_kernel::change::Change;
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::Item;
use search::Search;
use step::{Cell, Need, Step};

/// Whether some operation of a history is about several keys at once.
#[must_use]
pub fn has_some(history: &History) -> bool {
    let is_one = |entry: &Entry| matches!(entry.operation(), Operation::Transact { .. });
    history.entries().iter().any(is_one)
}

/// Whether it is not known what an operation leaves, if it is done.
fn is_beyond(entry: &Entry) -> bool {
    let Operation::Transact { items, .. } = entry.operation() else { return false };
    let is_told = matches!(entry.completion(), Completion::Transacted(_));
    let is_known = |change: &Change| is_told && matches!(change, Change::PutIf { .. });
    let is_done = *entry.completion() != Completion::Refused;
    let unknown = |item: &Item| {
        item.is_about_expiry()
            || matches!(item, Item::Change { change, .. } if !is_known(change))
            || matches!(item, Item::Copy { .. })
    };
    is_done && items.iter().any(unknown)
}

/// Judges a history; the searches for all sets of keys end after `steps_max` steps together, and
/// what is not known then stays unknown ([`crate::STEPS_MAX_DEFAULT`]).
#[must_use]
pub fn judge(history: &History, steps_max: u64) -> Verdict {
    if history.entries().iter().any(is_beyond) {
        let why = "what a change in place or a copy leaves is not known here, but for a put that \
                   asks if there is a value and was told, nor when keys end by themselves; \
                   additions to numbers are judged as counters";
        return Verdict::Unknown { why: why.into() };
    }
    let (mut verdict, mut steps_left) = (Verdict::Holds, steps_max);
    let mut search = Search::default();
    for part in parts::of(history) {
        let answer = search.run(&part.steps, part.keys.len(), part.cells.len(), steps_left);
        steps_left = steps_left.saturating_sub(search.steps());
        match answer {
            Finding::Explained => {}
            Finding::CutOff => verdict = Verdict::Unknown { why: cut_off(&part, search.steps()) },
            Finding::Contradiction => {
                let explanation = explain(history, &part, &mut search);
                return Verdict::Violated(Box::new(explanation));
            }
        }
    }
    verdict
}

fn cut_off(part: &Part<'_>, steps: u64) -> String {
    let (count, keys) = (part.steps.len(), title(part));
    format!(
        "the search for an order of the {count} operations on {keys} was cut off after {steps} \
         steps"
    )
}

/// Which keys a part has: the first of them, and how many more.
fn title(part: &Part<'_>) -> String {
    let first = part.keys.first().map_or(String::new(), |key| shown(key));
    match part.keys.len() {
        0 | 1 => format!("key {first}"),
        keys => format!("{keys} keys from {first} on"),
    }
}

/// Explains why no order explains a part.
fn explain(history: &History, part: &Part<'_>, search: &mut Search) -> Explanation {
    let rest = reduce::reduce(search, &part.steps, part.keys.len(), part.cells.len());
    let why = why(history, part, &rest);
    let (count, all) = (rest.len(), part.steps.len());
    let headline =
        format!("{}: no order explains these {count} of its {all} operations", title(part));
    let key = part.keys.first().copied().cloned().unwrap_or_default();
    Explanation::under(history, key, &headline, rest.iter().map(|step| step.entry), why)
}

/// Why what is left of a part contradicts itself.
fn why(history: &History, part: &Part<'_>, rest: &[Step]) -> String {
    let client = |step: &Step| history.entries()[step.entry as usize].client();
    if let Some(step) = rest.iter().find(|step| step.is_impossible) {
        let client = client(step);
        return format!("what {client} was told contradicts what its own items had written before");
    }
    let unwritten = |step: &Step| {
        let is_written = |cell: Cell| rest.iter().any(|step| step.writes.contains(&cell));
        let found = step.needs.iter().find_map(|needed| match needed.need {
            Need::Is(cell) if !is_written(cell) => Some(part.cells[cell as usize]),
            _ => None,
        });
        let (key, value) = found?;
        let (client, key) = (client(step), shown(part.keys[key as usize]));
        let value = shown(value?);
        Some(format!("{client} found {value} in key {key}, which nobody can have written by then"))
    };
    let found = rest.iter().find_map(unwritten);
    found.unwrap_or_else(|| "no order of these gives each of them what it was told".into())
}
