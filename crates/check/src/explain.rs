//! Says in few lines why a history breaks a promise.

use crate::histories::items;
use crate::histories::register::{ABSENT, Action, Kind, value_of};
use crate::history::{ClientId, Completion, Entry, History};
use crate::report::Verdict;
use crate::search::orders::Search;
use crate::search::reduce::{cannot_have_seen, reduce};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::{self, Write as _};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Time;
use xxhash_rust::xxh3::xxh3_64;

/// Keys and values up to this length are shown in full.
const SHOWN_BYTES_MAX: usize = 32;
/// How much of a longer one is shown, before its length and its hash.
const PREFIX_BYTES: usize = 16;
/// How many operations are listed at the most.
const LINES_MAX: usize = 40;

/// A broken promise: the operations that show it, and one sentence that says why they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The key; the first one if operations bind several together.
    pub key: Bytes,
    /// The operations that show it, as indices into [`History::entries`], in the order they began.
    pub operations: Vec<usize>,
    /// Why they show it, in one sentence.
    pub why: String,
    lines: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.lines, self.why)
    }
}

impl Explanation {
    /// Lists these operations of a key under a headline.
    pub(crate) fn new(
        history: &History,
        key: &Bytes,
        headline: &str,
        entries: impl IntoIterator<Item = u32>,
        why: String,
    ) -> Explanation {
        let headline = format!("key {}: {headline}", shown(key));
        Explanation::under(history, key.clone(), &headline, entries, why)
    }

    /// Lists operations under a headline that names their keys.
    pub(crate) fn under(
        history: &History,
        key: Bytes,
        headline: &str,
        entries: impl IntoIterator<Item = u32>,
        why: String,
    ) -> Explanation {
        let mut operations: Vec<usize> = entries.into_iter().map(|entry| entry as usize).collect();
        operations.sort_unstable();
        operations.dedup();
        let mut lines = format!("{headline} (times in ms)\n");
        lines.push_str(&table(history, &operations));
        Explanation { key, operations, why, lines }
    }

    /// Shows operations as they are laid out in rows.
    pub(crate) fn of_rows(
        key: Bytes,
        headline: &str,
        operations: Vec<usize>,
        rows: &[[String; 5]],
        why: String,
    ) -> Explanation {
        let shown = &rows[..rows.len().min(LINES_MAX)];
        let lines = format!("{headline} (times in ms)\n{}", lines(shown, rows.len()));
        Explanation { key, operations, why, lines }
    }
}

/// Explains why no order explains the actions of a key.
pub(crate) fn contradiction(
    history: &History,
    key: &Bytes,
    entries: &[u32],
    search: &mut Search,
    (actions, values): (&[Action], u32),
) -> Explanation {
    let rest = reduce(search, actions, values);
    let mut shown: Vec<u32> = rest.iter().map(|action| action.entry).collect();
    let reads = rest.iter().filter(|action| !action.is_write());
    let why = reads
        .filter_map(|read| match unwritten(history, entries, read, &rest) {
            Some((why, source)) => {
                shown.extend(source);
                Some(why)
            }
            None => outdated(history, read, &rest),
        })
        .next_back();
    let why = why.unwrap_or_else(|| {
        "no order of these operations gives every get the value it returned".to_string()
    });
    let headline =
        format!("no order explains these {} of its {} operations", shown.len(), entries.len());
    Explanation::new(history, key, &headline, shown, why)
}

/// Explains why no order explains whether a key was there, as scans tell it.
pub(crate) fn presence(
    history: &History,
    key: &Bytes,
    search: &mut Search,
    actions: &[Action],
    values: u32,
) -> Explanation {
    let rest = reduce(search, actions, values);
    let told = |read: &Action| {
        let entry = &history.entries()[read.entry as usize];
        let is_scan = matches!(entry.operation(), Operation::Scan { .. });
        let what = if read.value == ABSENT { "left it out" } else { "showed it" };
        is_scan.then(|| format!("the scan by {} {what}", entry.client()))
    };
    let told: Vec<String> = rest.iter().filter_map(told).collect();
    let why = format!("{}: no order lets the key be there when they say so", told.join(", "));
    let headline = format!("no order explains these {} operations", rest.len());
    Explanation::new(history, key, &headline, rest.iter().map(|action| action.entry), why)
}

/// The verdict on a key whose search was cut off.
pub(crate) fn cut_off(key: &Bytes, count: usize, steps: u64) -> Verdict {
    let why = format!(
        "the search for an order of the {count} operations on key {} was cut off after {steps} \
         steps",
        shown(key)
    );
    Verdict::Unknown { why }
}

/// If a read returned a value of no write it can have seen, says so, and which put comes closest.
fn unwritten(
    history: &History,
    entries: &[u32],
    read: &Action,
    rest: &[Action],
) -> Option<(String, Option<u32>)> {
    let is_source = |action: &Action| action.is_write() && action.value == read.value;
    if read.value == ABSENT || rest.iter().any(is_source) {
        return None;
    }
    let all = history.entries();
    let reader = &all[read.entry as usize];
    let wrote_it = |entry: &&u32| {
        let entry = &all[**entry as usize];
        entry.operation().is_write() && value_of(entry) == value_of(reader)
    };
    let mut sources = entries.iter().filter(wrote_it).copied();
    let told = returned(reader);
    let Some(source) = sources.next() else {
        return Some((format!("{told}, which nobody ever wrote"), None));
    };
    let write = &all[source as usize];
    let why = if *write.completion() == Completion::Refused {
        let act = act(write);
        format!("{told}, though {act} had been refused with the promise that nothing was changed")
    } else {
        format!("{told} before {} had begun", act(write))
    };
    Some((why, Some(source)))
}

/// If a read returned a value after another one had surely replaced it, says so.
fn outdated(history: &History, read: &Action, rest: &[Action]) -> Option<String> {
    let sources: Vec<&Action> =
        rest.iter().filter(|action| action.is_write() && action.value == read.value).collect();
    let is_only_source = sources.len() + usize::from(read.value == ABSENT) == 1;
    let was_seen_before = |witness: &Action| {
        let same = |other: &&Action| !other.is_write() && other.value == read.value;
        is_only_source && rest.iter().filter(same).any(|other| other.is_before(witness))
    };
    let mut witnesses = rest.iter().filter(|witness| {
        witness.value != read.value
            && witness.kind != Kind::Open
            && witness.is_before(read)
            && sources.iter().all(|source| {
                source.is_before(witness)
                    || cannot_have_seen(read, source, rest)
                    || was_seen_before(witness)
            })
    });
    let witness = witnesses.next_back()?;
    let all = history.entries();
    let entry = &all[witness.entry as usize];
    let event = if witness.is_write() {
        format!("{} had completed", act(entry))
    } else {
        returned(entry).replacen(" returned", " had returned", 1)
    };
    let reader = &all[read.entry as usize];
    let again = match value_of(reader) {
        Some(value) => format!("nobody wrote {} again", shown(value)),
        None => "no delete came after it".to_string(),
    };
    Some(format!("{} after {event}, and {again}", returned(reader)))
}

/// What a get returned, as a clause.
pub(crate) fn returned(entry: &Entry) -> String {
    format!("get by {} returned {}", entry.client(), found(value_of(entry)))
}

/// What a write did, as a noun.
pub(crate) fn act(entry: &Entry) -> String {
    format!("{} by {}", request(entry.operation()), entry.client())
}

/// A value that may be absent.
pub(crate) fn found(value: Option<&Bytes>) -> String {
    value.map_or("nothing".to_string(), |value| shown(value))
}

/// A key or value in quotes; a long one as its beginning, length and hash.
pub(crate) fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES_MAX {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let prefix = bytes[..PREFIX_BYTES].escape_ascii();
    format!("\"{prefix}…\" ({} bytes, #{:08x})", bytes.len(), xxh3_64(bytes) as u32)
}

/// A time in milliseconds, to the nanosecond.
pub(crate) fn milliseconds(time: Time) -> String {
    format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000)
}

fn request(operation: &Operation) -> String {
    match operation {
        Operation::Get { .. } => "get".to_string(),
        Operation::Put { value, .. } => format!("put {}", shown(value)),
        Operation::Delete { .. } => "delete".to_string(),
        Operation::Scan { from, .. } => format!("scan from {from}"),
        Operation::Transact { items, .. } => format!("transact {}", items::asked(items)),
        Operation::HowEnded { .. } => unreachable!("it completes another operation"),
        Operation::Tree(ask) => format!("{:?}", ask.act),
    }
}

fn answer(completion: &Completion) -> String {
    match completion {
        Completion::Value(value) => format!("returned {}", found(value.as_ref())),
        Completion::Written => "written".to_string(),
        Completion::Tree(reply) => format!("{:?} at {}", reply.told, reply.zxid.0),
        Completion::Deleted { .. } => "deleted".to_string(),
        Completion::Page { keys, next: Some(next) } => {
            format!("{} keys, next {next}", keys.len())
        }
        Completion::Page { keys, next: None } => format!("{} keys, the end", keys.len()),
        Completion::Transacted(told) => format!("done {}", items::told(told)),
        Completion::Committed => "done, as was told later".to_string(),
        Completion::Unmet { item } => format!("item {item} did not hold, nothing changed"),
        Completion::Refused => "refused, nothing changed".to_string(),
        Completion::Unknown => "unknown, may apply at any time".to_string(),
    }
}

/// What is shown of an operation: who asked what and when, and how it ended.
pub(crate) fn row_of(
    client: ClientId,
    operation: &Operation,
    invoked: Time,
    completed: Option<&(Time, Completion)>,
) -> [String; 5] {
    let completion = completed.map_or(&Completion::Unknown, |(_, completion)| completion);
    let is_over = *completion != Completion::Unknown;
    let completed = completed.filter(|_| is_over).map(|(time, _)| milliseconds(*time));
    [
        client.to_string(),
        request(operation),
        milliseconds(invoked),
        completed.unwrap_or_else(|| "open".to_string()),
        answer(completion),
    ]
}

/// One aligned line per operation of a history.
fn table(history: &History, operations: &[usize]) -> String {
    let row = |index: &usize| {
        let entry = &history.entries()[*index];
        let completed = entry.completed().map(|time| (time, entry.completion().clone()));
        row_of(entry.client(), entry.operation(), entry.invoked(), completed.as_ref())
    };
    let rows: Vec<[String; 5]> = operations.iter().take(LINES_MAX).map(row).collect();
    lines(&rows, operations.len())
}

/// One aligned line per row; there are so many operations.
fn lines(rows: &[[String; 5]], count: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 4] = core::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for [client, request, invoked, completed, answer] in rows {
        let [a, b, c, d] = widths;
        writeln!(text, "  {client:a$}  {request:b$}  {invoked:>c$} – {completed:<d$}  {answer}")
            .expect("a string takes any text");
    }
    if count > LINES_MAX {
        let more = count - LINES_MAX;
        writeln!(text, "  … and {more} more").expect("a string takes any text");
    }
    text
}
