//! The one place where the API's words meet those of the kernel.
//!
//! What a keyspace takes is in the functions that build operations, what it answers in those that
//! read outcomes: plain values, or siblings and contexts, with request ids kept in versions.

use super::expiry::{self, Asked, Timed};
use super::keyspaces::Keyspace;
use super::named::write_name;
use super::problem::{self, Problem};
use bytes::Bytes;
use quorate_api::v1::place::Place as Where;
use quorate_api::v1::{self, Absent, Reading, WriteOptions, reading::State};
use quorate_host::CallEnd;
use quorate_kernel::engine::Capability;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::{CONTEXT_BYTES_MAX, KEY_BYTES_MAX};
use quorate_kernel::operation::{Cursor, Operation, Outcome, Which};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::transaction::{Item, ItemOutcome};
use quorate_kernel::write::Replaces;

/// What to do when a value does not fit.
const SPLIT: &str =
    "split it, or use a keyspace that takes longer values (quorate keyspace create)";

/// A read of a key: of all that stands side by side, where that is kept.
pub fn get(keyspace: &Keyspace, key: Bytes, replicas: u32) -> Result<Operation, Problem> {
    check_key(&key)?;
    check_replicas(keyspace, replicas)?;
    let which = if has_siblings(keyspace) { Which::All } else { Which::One };
    let replies = u8::try_from(replicas).ok().filter(|replies| *replies > 0);
    able(keyspace, "a read of a key", Operation::Get { key, which, replies })
}

/// A read of a key at its place, if it is told one.
pub fn get_at(
    keyspace: &Keyspace,
    key: Bytes,
    replicas: u32,
    place: &Option<v1::Place>,
) -> Result<Operation, Problem> {
    at(keyspace, place.clone(), get(keyspace, key, replicas)?)
}

/// A write of a key.
pub fn put(
    keyspace: &Keyspace,
    key: Bytes,
    value: Bytes,
    context: Bytes,
    options: &WriteOptions,
) -> Result<Operation, Problem> {
    check_put(keyspace, (&key, &value), &context)?;
    if has_receipts(keyspace) {
        // The id travels with the write: one that is done twice is one all the same.
        let replaces = Replaces::After(Bytes::new());
        return Ok(Operation::Put { key, value, replaces, name: write_name(options) });
    }
    if !has_siblings(keyspace) {
        return able(keyspace, "a write of a key", Operation::put(key, value));
    }
    // The id stays with the version: one that is written twice is one all the same.
    Ok(Operation::put_over(key, value, context, write_name(options)))
}

/// A write of a key that expires: as a transaction, for its time is one of an item.
pub fn put_expiring(
    keyspace: &Keyspace,
    (key, value): (Bytes, Bytes),
    expires: Option<v1::Expiry>,
    context: &Bytes,
    options: &WriteOptions,
) -> Result<Asked, Problem> {
    let (expiry, is_relative) = expiry::of_put(expires, "expiry")?;
    let (asked, instead) = ("a put with an expiry", Some("leave the expiry out"));
    let lacking = keyspace.entry.require(Capability::Expiry, asked, instead);
    lacking.map_err(|lacking| problem::lacking(&lacking))?;
    check_put(keyspace, (&key, &value), context)?;
    let item = Item::Put { key, value, expiry };
    let whole = Asked::transaction(vec![Timed { item, is_relative }], write_name(options));
    Ok(Asked { operation: able(keyspace, asked, whole.operation)?, ..whole })
}

fn check_put(
    keyspace: &Keyspace,
    (key, value): (&Bytes, &Bytes),
    context: &Bytes,
) -> Result<(), Problem> {
    check_key(key)?;
    check_context(keyspace, context)?;
    match keyspace.entry.value_bytes_max {
        limit if value.len() > limit => Err(problem::too_large("value", value.len(), limit, SPLIT)),
        _ => Ok(()),
    }
}

/// Where operations stand, of a keyspace that knows of places.
pub fn checked(keyspace: &Keyspace, place: Option<v1::Place>) -> Result<Option<Where>, Problem> {
    let Some(place) = place.and_then(|place| place.place) else { return Ok(None) };
    let (asked, instead) = ("the field place", Some("leave it out"));
    let lacking = keyspace.entry.require(Capability::Receipts, asked, instead);
    lacking.map_err(|lacking| problem::lacking(&lacking))?;
    Ok(Some(place))
}

/// The operation at its place, if it is told one.
pub fn at(
    keyspace: &Keyspace,
    place: Option<v1::Place>,
    mut operation: Operation,
) -> Result<Operation, Problem> {
    let Some(place) = checked(keyspace, place)? else { return Ok(operation) };
    match (&mut operation, place) {
        (Operation::Get { which, .. }, Where::After(token)) => *which = Which::After(token),
        (Operation::Get { which, .. }, Where::Version(version)) => *which = Which::Version(version),
        (Operation::Put { replaces, .. } | Operation::Delete { replaces, .. }, place) => {
            *replaces = match place {
                Where::After(token) => Replaces::After(token),
                Where::Version(version) => Replaces::Version(version),
            };
        }
        _ => return Err(problem::mismatch()),
    }
    Ok(operation)
}

/// Whether answers of a keyspace come with receipts.
fn has_receipts(keyspace: &Keyspace) -> bool {
    keyspace.entry.can(Capability::Receipts)
}

/// What an outcome carries beside its value: a context, or a receipt.
fn beside(keyspace: &Keyspace, context: Bytes) -> Result<(Bytes, Option<v1::Receipt>), Problem> {
    if !has_receipts(keyspace) {
        return Ok((context, None));
    }
    let receipt = Receipt::of_context(&context).ok_or_else(problem::mismatch)?;
    let Receipt { token, acks, is_degraded } = receipt;
    Ok((Bytes::new(), Some(v1::Receipt { token, acks: u32::from(acks), is_degraded })))
}

/// Whether values stand side by side in a keyspace.
fn has_siblings(keyspace: &Keyspace) -> bool {
    keyspace.entry.can(Capability::Siblings)
}

/// The operation, if the keyspace's engine can do it.
pub(super) fn able(
    keyspace: &Keyspace,
    asked: &str,
    operation: Operation,
) -> Result<Operation, Problem> {
    match keyspace.entry.engine.lacks(&operation) {
        None => Ok(operation),
        Some(needs) => {
            let lacking = keyspace.entry.require(needs, asked, None);
            lacking.map(|()| operation).map_err(|lacking| problem::lacking(&lacking))
        }
    }
}

/// A delete of a key: without a context of what the coordinator has of it.
pub fn delete(keyspace: &Keyspace, key: Bytes, context: Bytes) -> Result<Operation, Problem> {
    check_key(&key)?;
    check_context(keyspace, &context)?;
    Ok(match context.is_empty() {
        true => Operation::delete(key),
        false => Operation::delete_over(key, context),
    })
}

fn check_key(key: &Bytes) -> Result<(), Problem> {
    match key.len() {
        0..=KEY_BYTES_MAX => Ok(()),
        length => {
            Err(problem::too_large("key", length, KEY_BYTES_MAX, "use shorter keys, or a hash"))
        }
    }
}

/// Whether a read may ask for so many replicas.
pub fn check_replicas(keyspace: &Keyspace, replicas: u32) -> Result<(), Problem> {
    if replicas == 0 {
        return Ok(());
    }
    let (asked, instead) = ("the field replicas", Some("leave replicas at 0"));
    let lacking = keyspace.entry.require(Capability::Replies, asked, instead);
    lacking.map_err(|lacking| problem::lacking(&lacking))?;
    let most = keyspace.keyspace().replicas();
    if replicas as usize > most {
        let what = format!("a read of {replicas} replicas");
        let right = format!("each key has {most}; ask for no more");
        return Err(problem::invalid("replicas", what, right));
    }
    Ok(())
}

fn check_context(keyspace: &Keyspace, context: &Bytes) -> Result<(), Problem> {
    if context.is_empty() {
        return Ok(());
    }
    let (asked, instead) = ("a context", Some("leave the context out"));
    let lacking = keyspace.entry.require(Capability::Siblings, asked, instead);
    lacking.map_err(|lacking| problem::lacking(&lacking))?;
    if context.len() > CONTEXT_BYTES_MAX {
        let right = "give the context of an earlier answer as it was";
        return Err(problem::too_large("context", context.len(), CONTEXT_BYTES_MAX, right));
    }
    Ok(())
}

/// The coordinator as the API says it.
pub fn coordinator(who: Incarnation) -> v1::Coordinator {
    v1::Coordinator { node: who.node.0, start: who.start.0 }
}

/// What became of a call, and whether an earlier request had it done.
pub fn ended(told: CallEnd, me: v1::Coordinator) -> Result<(Outcome, bool), Problem> {
    match told {
        CallEnd::Ended { outcome: Outcome::Refused(refusal), .. } => {
            Err(problem::refused(&refusal))
        }
        CallEnd::Ended { outcome, is_repeated } => Ok((outcome, is_repeated)),
        CallEnd::Reused => Err(problem::reused()),
        CallEnd::Elsewhere => Err(problem::elsewhere(me)),
        CallEnd::Forgotten => Err(problem::forgotten()),
    }
}

/// What was read in a keyspace.
pub fn reading(keyspace: &Keyspace, outcome: Outcome) -> Result<Reading, Problem> {
    let Outcome::Values { values, context } = outcome else { return Err(problem::mismatch()) };
    let (context, receipt) = beside(keyspace, context)?;
    let state = if has_siblings(keyspace) {
        State::Siblings(v1::Siblings { values: values.into_vec(), context })
    } else {
        match values.into_one() {
            Ok(Some(value)) => State::Value(value),
            Ok(None) => State::Absent(Absent {}),
            Err(_) => return Err(problem::mismatch()),
        }
    };
    Ok(Reading { state: Some(state), receipt })
}

/// A write has taken effect; the context that covers it, or its receipt.
pub fn written(
    keyspace: &Keyspace,
    outcome: Outcome,
) -> Result<(Bytes, Option<v1::Receipt>), Problem> {
    match outcome {
        Outcome::Written { context } => beside(keyspace, context),
        // One that expires is an item.
        Outcome::Transacted(told) if told[..] == [ItemOutcome::Written] => Ok((Bytes::new(), None)),
        _ => Err(problem::mismatch()),
    }
}

/// A delete has taken effect; whether there was a value, which is not said of what a context
/// covered, and the context that covers it, or its receipt.
pub fn deleted(
    keyspace: &Keyspace,
    outcome: Outcome,
) -> Result<(bool, Bytes, Option<v1::Receipt>), Problem> {
    match outcome {
        Outcome::Deleted { existed, context } => {
            let (context, receipt) = beside(keyspace, context)?;
            Ok((existed, context, receipt))
        }
        _ => Err(problem::mismatch()),
    }
}

/// A page of keys, and where to go on.
pub fn page(outcome: Outcome) -> Result<(Vec<Bytes>, Option<Cursor>), Problem> {
    match outcome {
        Outcome::Page { keys, next } => Ok((keys, next)),
        _ => Err(problem::mismatch()),
    }
}

/// How many bytes of values a reading holds.
pub fn size(reading: &Reading) -> usize {
    match &reading.state {
        Some(State::Value(value)) => value.len(),
        Some(State::Siblings(siblings)) => siblings.values.iter().map(Bytes::len).sum(),
        Some(State::Absent(_)) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyspaces::tests::sample;
    use super::super::named::named;
    use super::*;
    use quorate_api::v1::{Coordinator, Kind, Repeat};
    use quorate_host::samples;
    use quorate_kernel::expiry::Expiry;
    use quorate_kernel::ids::LaneId;
    use quorate_kernel::time::{Span, WallTime};
    use quorate_kernel::write::{WriteId, WriteName};

    fn bytes(length: usize) -> Bytes {
        Bytes::from(vec![b'x'; length])
    }

    #[test]
    fn keys_values_contexts_and_replicas_are_checked() {
        let all = sample();
        let keyspace = all.find("default").expect("it is there");
        let (none, usual) = (Bytes::new(), WriteOptions::default());
        assert!(get(keyspace, bytes(KEY_BYTES_MAX), 0).is_ok());
        assert!(
            put(keyspace, none.clone(), none.clone(), none, &usual).is_ok(),
            "both may be empty"
        );
        let limit = keyspace.entry.value_bytes_max;
        let table = [
            (get(keyspace, bytes(KEY_BYTES_MAX + 1), 0), Kind::TooLarge, "key"),
            (get(keyspace, bytes(1), 2), Kind::Unsupported, ""),
            (put(keyspace, bytes(1), bytes(limit + 1), bytes(0), &usual), Kind::TooLarge, "value"),
            (put(keyspace, bytes(1), bytes(1), bytes(1), &usual), Kind::Unsupported, ""),
            (delete(keyspace, bytes(1), bytes(1)), Kind::Unsupported, ""),
        ];
        for (result, kind, field) in table {
            let problem = result.expect_err("it breaks a rule");
            assert_eq!((problem.kind(), problem.field.as_str()), (kind, field), "{problem:?}");
        }
    }

    #[test]
    fn a_put_that_expires_is_an_item_where_keys_expire_and_refused_elsewhere() {
        let usual = WriteOptions::default();
        let after = |ms| Some(v1::Expiry { end: Some(v1::expiry::End::AfterMs(ms)) });
        let of = |keyspace: &Keyspace, value, ms| {
            put_expiring(keyspace, (bytes(1), bytes(value)), after(ms), &bytes(0), &usual)
        };
        let keyspace = samples::served("rooms", "serializable", &[], LaneId(7));
        let asked = of(&keyspace, 2, 40).expect("all is right");
        let expiry = Expiry::At(WallTime(140));
        let items = vec![Item::Put { key: bytes(1), value: bytes(2), expiry }];
        assert_eq!(asked.at(WallTime(100)), Operation::Transact { items, name: None });
        let done = Outcome::Transacted(vec![ItemOutcome::Written]);
        assert_eq!(written(&keyspace, done), Ok((bytes(0), None)));
        let long = of(&keyspace, keyspace.entry.value_bytes_max + 1, 40);
        assert_eq!(long.expect_err("too long").field, "value");
        let never = of(&keyspace, 2, 0).expect_err("it would never be there");
        assert_eq!((never.kind(), &never.field[..]), (Kind::Invalid, "expiry"));
        let all = sample();
        for (name, engine) in [("default", "linearizable"), ("carts", "causal")] {
            let refused = of(all.find(name).expect("it is there"), 2, 40).expect_err("it cannot");
            let what = format!(
                "a put with an expiry needs an engine with expiry; this keyspace is {engine}"
            );
            assert_eq!((refused.kind(), &refused.what), (Kind::Unsupported, &what));
            let right = "leave the expiry out, or use a keyspace of the engine serializable";
            assert_eq!(refused.right, right);
        }
    }

    #[test]
    fn a_causal_keyspace_is_asked_with_contexts_and_answers_with_siblings() {
        let all = sample();
        let keyspace = all.find("carts").expect("it is there");
        let read = get(keyspace, bytes(1), 2).expect("two of three");
        assert_eq!(read, Operation::get_all(bytes(1), Some(2)));
        assert_eq!(get(keyspace, bytes(1), 4).expect_err("four of three").field, "replicas");
        let options = WriteOptions { request_id: bytes(16), ..WriteOptions::default() };
        let write = put(keyspace, bytes(1), bytes(2), bytes(3), &options).expect("all is right");
        let id = WriteId(u128::from_be_bytes([b'x'; 16]));
        let id = Some(WriteName { id, age: Span(0) });
        let (key, value, context) = (bytes(1), bytes(2), bytes(3));
        assert_eq!(write, Operation::put_over(key, value, context, id));
        let first = Coordinator { node: 7, start: 2 };
        let repeat = Some(Repeat { coordinator: Some(first), age_ms: 9 });
        let named =
            named(&WriteOptions { repeat, ..options }, &write.into()).expect("it has an id");
        assert_eq!(named.map(|named| named.repeat), Some(None), "anybody may be asked again");
        let long = put(keyspace, bytes(1), bytes(1), bytes(1 << 20), &WriteOptions::default());
        assert_eq!(long.expect_err("too long").field, "context");
        let blind = delete(keyspace, bytes(1), bytes(0)).expect("it needs no context");
        assert_eq!(blind, Operation::delete(bytes(1)));
        let seen = delete(keyspace, bytes(1), bytes(3)).expect("all is right");
        let (key, context) = (bytes(1), bytes(3));
        assert_eq!(seen, Operation::delete_over(key, context));
        let values = vec![bytes(1), bytes(2)].into();
        let read = reading(keyspace, Outcome::Values { values, context: bytes(3) });
        assert_eq!(size(&read.expect("siblings")), 3);
        let alone = Outcome::Values { values: vec![bytes(1)].into(), context: bytes(3) };
        let siblings = v1::Siblings { values: vec![bytes(1)], context: bytes(3) };
        let alone = reading(keyspace, alone).expect("one sibling");
        assert_eq!(alone.state, Some(State::Siblings(siblings)));
        let context = bytes(4);
        let done = Outcome::Written { context: context.clone() };
        assert_eq!(written(keyspace, done), Ok((bytes(4), None)));
        let gone = Outcome::Deleted { existed: false, context };
        assert_eq!(deleted(keyspace, gone), Ok((false, bytes(4), None)));
    }
}
