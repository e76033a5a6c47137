//! Everything acknowledged is there after the last restart.
//!
//! The history says when all faults had ended ([`crate::history::Recorder::heal`]); gets invoked
//! later are final. Every key with an acknowledged write needs an answered final get, and the final
//! gets must fit the writes. Earlier gets are left out: what they saw is another judge's question.

use crate::atomic::Judge;
use crate::explain::{Explanation, act, found, milliseconds};
use crate::histories::register::value_of;
use crate::history::{Completion, Entry, History};
use crate::report::Verdict;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// Judges one history; the searches for all keys end after `steps_max` steps together.
#[must_use]
pub fn judge(history: &History, steps_max: u64) -> Verdict {
    let mut judge = Judge::new();
    judge.partition.fill(history);
    judge_keys(&mut judge, history, steps_max)
}

/// Judges a history that the judge's partition was filled with.
pub(crate) fn judge_keys(judge: &mut Judge, history: &History, steps_max: u64) -> Verdict {
    let all = history.entries();
    let Some(healed) = history.healed_order() else {
        return Verdict::Unknown {
            why: "the history does not say when all faults had ended".into(),
        };
    };
    if let Some(unjudged) = judge.partition.unjudged() {
        return unjudged;
    }
    let mut verdict = Verdict::Holds;
    let mut steps_left = steps_max;
    for key in 0..judge.partition.keys() {
        let entries = judge.partition.entries(key);
        if let Some(explanation) = loss(history, judge, key) {
            return Verdict::Violated(Box::new(explanation));
        }
        let is_final = |entry: &u32| history.is_final_get(&all[*entry as usize]);
        let is_acknowledged = |entry: &u32| is_acknowledged(&all[*entry as usize]);
        if entries.iter().any(is_final) {
            let part = judge.judge_part(history, key, &mut steps_left, |action| {
                action.is_write() || action.began > healed
            });
            match part {
                Verdict::Holds => {}
                Verdict::Unknown { .. } => verdict = part,
                Verdict::Violated(_) => return part,
            }
        } else if entries.iter().any(is_acknowledged) {
            let name = found(Some(judge.partition.name(key, history)));
            let why = format!("key {name} has an acknowledged write but no answered final get");
            verdict = Verdict::Unknown { why };
        }
    }
    verdict
}

fn is_acknowledged(entry: &Entry) -> bool {
    entry.operation().is_write() && entry.is_answered()
}

/// An acknowledged write of the key that a final get shows to be gone: what the get returned had
/// been replaced by it.
fn loss(history: &History, judge: &Judge, key: usize) -> Option<Explanation> {
    let all = history.entries();
    let entries = judge.partition.entries(key);
    let finals = entries.iter().filter(|entry| history.is_final_get(&all[**entry as usize]));
    for &last in finals {
        let get = &all[last as usize];
        let replaced = |entry: &&u32| {
            let entry = &all[**entry as usize];
            is_acknowledged(entry) && entry.ended < get.began && value_of(entry) != value_of(get)
        };
        let newest =
            entries.iter().filter(replaced).max_by_key(|entry| all[**entry as usize].began);
        let Some(&newest) = newest else { continue };
        let lost = &all[newest as usize];
        // A write that may have come after the lost one explains the value.
        let explains = |entry: &&u32| {
            let entry = &all[**entry as usize];
            let may_be_later = !entry.is_answered() || entry.ended > lost.began;
            entry.may_have_written()
                && value_of(entry) == value_of(get)
                && may_be_later
                && entry.began < get.ended
        };
        if entries.iter().find(explains).is_none() {
            let name = judge.partition.name(key, history);
            let why = statement(lost, get);
            let wrote_it = |entry: &&u32| {
                let entry = &all[**entry as usize];
                entry.operation().is_write() && value_of(entry) == value_of(get)
            };
            let source = entries.iter().rfind(wrote_it).copied();
            let shown = [Some(newest), Some(last), source].into_iter().flatten();
            let headline = "an acknowledged write is gone";
            return Some(Explanation::new(history, name, headline, shown, why));
        }
    }
    None
}

fn statement(lost: &Entry, get: &Entry) -> String {
    let key = found(lost.operation().key());
    let fate = match lost.completion() {
        Completion::Deleted { .. } => "is undone",
        _ => "is gone",
    };
    format!(
        "acknowledged {} of key {key}, confirmed at {} ms, {fate}: the final get by {} returned {}",
        act(lost),
        milliseconds(lost.completed().unwrap_or_default()),
        get.client(),
        found(value_of(get))
    )
}
