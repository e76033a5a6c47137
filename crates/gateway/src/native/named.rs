//! Writes with a request id: how one is known when it is sent again.

use super::expiry::Asked;
use super::problem::{self, Problem};
use super::tree;
use bytes::Bytes;
use quorate_api::v1::{Coordinator, WriteOptions};
use quorate_host::Named;
use quorate_kernel::change::Change;
use quorate_kernel::expiry::{Expiry, When};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Condition, Item};
use quorate_kernel::write::{Replaces, WriteId, WriteName};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3Default;

/// How long a request id is.
const REQUEST_ID_BYTES: usize = 16;

/// The name of a write, for engines that know a repeated one by it.
pub fn write_name(options: &WriteOptions) -> Option<WriteName> {
    let id = <[u8; REQUEST_ID_BYTES]>::try_from(&options.request_id[..]).ok()?;
    let age = options.repeat.map_or(0, |repeat| repeat.age_ms.max(1));
    Some(WriteName { id: WriteId(u128::from_be_bytes(id)), age: millis(age) })
}

/// A span that a client has named, however long.
fn millis(count: u64) -> Span {
    Span(count.saturating_mul(1_000_000))
}

/// How a write is recognized when it is sent again, if it has an id.
pub fn named(options: &WriteOptions, asked: &Asked) -> Result<Option<Named>, Problem> {
    if options.request_id.is_empty() {
        return match options.repeat {
            None => Ok(None),
            Some(_) => {
                let what =
                    "the write is said to be sent again, but has no request_id to know it by";
                let right = "send the request_id that it was first sent with";
                Err(problem::invalid("options.request_id", what, right))
            }
        };
    }
    let Ok(id) = <[u8; REQUEST_ID_BYTES]>::try_from(&options.request_id[..]) else {
        let what = format!("a request_id of {} bytes", options.request_id.len());
        return Err(problem::invalid("options.request_id", what, "draw 16 random bytes"));
    };
    let repeat = match options.repeat {
        None => None,
        Some(repeat) => {
            let Some(first) = repeat.coordinator else {
                let what = "the write is sent again, but not said to whom it was sent first";
                let right = "give the coordinator of an earlier answer, or of Admin.Status";
                return Err(problem::invalid("options.repeat.coordinator", what, right));
            };
            Some((incarnation(first), Duration::from_millis(repeat.age_ms)))
        }
    };
    // With a context it may be done again, elsewhere or later: the id stays with the version, or
    // what it removes is gone already. So may a put whose id its engine knows everywhere.
    let is_known = match &asked.operation {
        Operation::Put { replaces, .. } => !matches!(replaces, Replaces::Whatever),
        operation => matches!(operation.replaces(), Some(Replaces::Seen(_))),
    };
    let repeat = repeat.filter(|_| !is_known);
    Ok(Some(Named { id, digest: digest(asked), repeat }))
}

/// What an item says of the end of its key, if anything: which kind it is, and a time.
fn ending(item: &Item) -> Option<(u8, i64)> {
    let of_put = |expiry: Expiry| match expiry {
        Expiry::Never => None,
        Expiry::Keep => Some((18, 0)),
        Expiry::At(at) => Some((19, at.0)),
    };
    match item {
        Item::Put { expiry, .. } | Item::Change { change: Change::PutIf { expiry, .. }, .. } => {
            of_put(*expiry)
        }
        Item::Expire { at: None, .. } => Some((20, 0)),
        Item::Expire { at: Some(at), when, .. } => {
            let tag = match when {
                When::Always => 21,
                When::IfNone => 22,
                When::IfSome => 23,
                When::IfLater => 24,
                When::IfSooner => 25,
                When::IfSomeAndSooner => 26,
            };
            Some((tag, at.0))
        }
        _ => None,
    }
}

/// What tells one kind of item from another.
fn tag(item: &Item) -> u8 {
    match item {
        Item::Get { .. } => 4,
        Item::Put { .. } => 5,
        Item::Delete { .. } => 6,
        Item::Check { holds: Condition::Absent, .. } => 7,
        Item::Check { holds: Condition::Present, .. } => 8,
        Item::Check { holds: Condition::Value(_), .. } => 9,
        Item::Change { change, .. } => match change {
            Change::PutIf { exists, .. } => 10 + u8::from(*exists),
            Change::Add(_) => 12,
            Change::AddFloat(_) => 13,
            Change::Append(_) => 14,
            Change::SetRange { .. } => 15,
        },
        Item::Expire { .. } => 16,
        Item::Lifetime { .. } => 17,
        Item::Copy { replaces, removes, .. } => 28 + 2 * u8::from(*replaces) + u8::from(*removes),
    }
}

/// A hash of what a write asks. Times that count from now on are in it as they were asked: when it
/// is sent again they are later by the clock.
fn digest(asked: &Asked) -> u64 {
    let Asked { operation, relative } = asked;
    let mut hasher = Xxh3Default::new();
    let mut add = |tag: u8, parts: [&[u8]; 3]| {
        hasher.update(&[tag]);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    };
    let context = |replaces: &'_ Replaces| match replaces {
        Replaces::Whatever => (0, Bytes::new()),
        Replaces::Seen(context) => (1, context.clone()),
        // When it is sent again its client may have seen more.
        Replaces::After(_) => (0, Bytes::new()),
        Replaces::Version(version) => (32, Bytes::copy_from_slice(&version.to_be_bytes())),
    };
    match operation {
        Operation::Put { key, value, replaces, .. } => {
            let (over, context) = context(replaces);
            add(over, [key, &context, value]);
        }
        Operation::Delete { key, replaces } => {
            let (over, context) = context(replaces);
            add(2 + over, [key, &context, b""]);
        }
        Operation::Get { .. } | Operation::Scan { .. } | Operation::HowEnded { .. } => return 0,
        Operation::Tree(ask) => {
            for (text, data) in tree::pieces(ask) {
                let is_there = [u8::from(data.is_some())];
                add(27, [text.as_bytes(), data.as_deref().unwrap_or_default(), &is_there]);
            }
        }
        Operation::Transact { items, .. } => {
            for (place, item) in items.iter().enumerate() {
                let tag = tag(item);
                let number = match item {
                    Item::Change { change: Change::Add(number), .. } => number.to_le_bytes(),
                    Item::Change { change: Change::SetRange { offset, .. }, .. } => {
                        offset.to_le_bytes()
                    }
                    _ => [0; 8],
                };
                let value = match item {
                    Item::Copy { to, .. } => to,
                    _ => item.value().map_or(&b""[..], |value| value),
                };
                add(tag, [item.key(), value, &number]);
                if let Some((tag, at)) = ending(item) {
                    let is_relative = relative.binary_search(&place).is_ok();
                    add(tag, [&at.to_le_bytes(), &[u8::from(is_relative)], b""]);
                }
            }
        }
    }
    hasher.digest()
}

fn incarnation(who: Coordinator) -> Incarnation {
    Incarnation { node: NodeId(who.node), start: Start(who.start) }
}

#[cfg(test)]
mod tests {
    use super::super::expiry::Timed;
    use super::*;
    use quorate_api::v1::{Kind, Repeat};
    use quorate_kernel::time::WallTime;

    fn bytes(length: usize) -> Bytes {
        Bytes::from(vec![b'x'; length])
    }

    #[test]
    fn a_request_id_is_sixteen_bytes_and_a_repeat_names_its_first() {
        let asked = Operation::delete(bytes(1)).into();
        let options = |id: usize, repeat: Option<Repeat>| WriteOptions {
            request_id: bytes(id),
            repeat,
            timeout_ms: 0,
        };
        let told = |options| named(&options, &asked);
        assert_eq!(told(options(0, None)), Ok(None));
        let first = Coordinator { node: 7, start: 2 };
        let repeat = Repeat { coordinator: Some(first), age_ms: 9 };
        let good = told(options(16, Some(repeat))).expect("all is there").expect("it has an id");
        let who = Incarnation { node: NodeId(7), start: Start(2) };
        assert_eq!(good.repeat, Some((who, Duration::from_millis(9))));
        for bad in [
            options(15, None),
            options(0, Some(repeat)),
            options(16, Some(Repeat { coordinator: None, age_ms: 0 })),
        ] {
            assert_eq!(told(bad).expect_err("it breaks a rule").kind(), Kind::Invalid);
        }
    }

    #[test]
    fn writes_that_ask_something_else_have_another_digest() {
        let of = |text: &'static str| Bytes::from_static(text.as_bytes());
        let put = |key: &'static str, value: &'static str| Operation::put(of(key), of(value));
        let aware = |key: &'static str, value: &'static str, context: &'static str| {
            let (key, value, context) = (of(key), of(value), of(context));
            Operation::put_over(key, value, context, None)
        };
        let both = |keys: &[&'static str]| {
            let item = |key: &&'static str| Item::Delete { key: of(key) };
            Operation::Transact { items: keys.iter().map(item).collect(), name: None }
        };
        let all = [
            put("a", "bc"),
            put("ab", "c"),
            put("a", "b"),
            Operation::delete(Bytes::from_static(b"a")),
            aware("a", "", "b"),
            aware("a", "b", ""),
            aware("ab", "", ""),
            Operation::delete_over(bytes(1), bytes(1)),
            both(&["a", "bc"]),
            both(&["ab", "c"]),
            both(&["a"]),
        ];
        let until = |at, is_relative| {
            let (key, at) = (of("a"), Some(WallTime(at)));
            let item = Item::Expire { key, at, when: When::Always };
            Asked::transaction(vec![Timed { item, is_relative }], None)
        };
        let timed = [until(1, false), until(1, true), until(2, true)];
        let all: Vec<Asked> = all.map(Asked::from).into_iter().chain(timed).collect();
        let mut digests: Vec<u64> = all.iter().map(digest).collect();
        assert_eq!(digest(&all[0]), digests[0]);
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), all.len());
    }
}
