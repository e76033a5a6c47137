//! Acts as Redis does them.

use super::world::{key, put};
use crate::serializable::evaluate;
use crate::serializable::rules::VALUE_BYTES_MAX;
use crate::serializable::{
    Act, ActError, Condition, Content, Done, Effect, Expiry, PASSED, Raw, Version, When,
};
use bytes::Bytes;
use std::vec;

fn has(value: &str, expires: Option<u64>) -> Content {
    Content { value: key(value).0, expires }
}

fn gives(value: &str, expires: Option<u64>) -> Option<Effect> {
    Some(Effect::Put { value: key(value), expires })
}

fn run(act: &Act, now: Option<&Content>) -> Result<(Done, Option<Effect>), ActError> {
    let mut has = now.cloned();
    let (done, is_other) = evaluate(act, &mut has, Version(7), VALUE_BYTES_MAX)?;
    let put = |Content { value, expires }| Effect::Put { value: Raw(value), expires };
    Ok((done, is_other.then(|| has.map_or(Effect::Delete, put))))
}

/// Whether something can be added to this value.
fn adds_to(text: &str) -> bool {
    run(&Act::Add(0), Some(&has(text, None))).is_ok()
}

#[test]
fn integers_have_one_form() {
    let good = ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"];
    assert!(good.iter().all(|text| adds_to(text)));
    let bad = ["", " 1", "1 ", "+1", "01", "-0", "1.0", "x", "9223372036854775808", "\u{663}"];
    assert!(!bad.iter().any(|text| adds_to(text)));
}

#[test]
fn adding() {
    let add = |increment| Act::Add(increment);
    assert_eq!(run(&add(3), None), Ok((Done::Integer(3), gives("3", None))));
    let kept = has("10", Some(2000));
    assert_eq!(run(&add(-11), Some(&kept)), Ok((Done::Integer(-1), gives("-1", Some(2000)))));
    assert_eq!(run(&add(1), Some(&has("1.5", None))), Err(ActError::NotAnInteger));
    let most = has("9223372036854775807", None);
    assert_eq!(run(&add(1), Some(&most)), Err(ActError::Overflow));
    assert_eq!(run(&add(i64::MIN), Some(&has("-1", None))), Err(ActError::Overflow));
}

#[test]
fn adding_what_has_a_point() {
    let add = |text: &str| Act::AddFloat(key(text));
    let float = |text: &str| Done::Float(key(text));
    assert_eq!(
        run(&add("0.1"), Some(&has("10.5", None))),
        Ok((float("10.6"), gives("10.6", None)))
    );
    assert_eq!(run(&add("5.0e3"), None), Ok((float("5000"), gives("5000", None))));
    assert_eq!(run(&add("-3"), Some(&has("3", None))), Ok((float("0"), gives("0", None))));
    assert_eq!(run(&add("x"), None), Err(ActError::NotAFloat));
    assert_eq!(run(&add("inf"), None), Err(ActError::NotAFloat));
    assert_eq!(run(&add("1"), Some(&has("nan", None))), Err(ActError::NotAFloat));
    let most = has("1.7e308", None);
    assert_eq!(run(&add("1.7e308"), Some(&most)), Err(ActError::NotFinite));
}

#[test]
fn appending_and_overwriting() {
    let now = has("hello", Some(2000));
    let append = |text: &str| Act::Append(key(text));
    assert_eq!(run(&append("!"), Some(&now)), Ok((Done::Length(6), gives("hello!", Some(2000)))));
    assert_eq!(run(&append(""), Some(&now)), Ok((Done::Length(5), None)));
    assert_eq!(run(&append(""), None), Ok((Done::Length(0), gives("", None))));
    let set = |offset, text: &str| Act::SetRange { offset, bytes: key(text) };
    assert_eq!(run(&set(1, "EL"), Some(&now)), Ok((Done::Length(5), gives("hELlo", Some(2000)))));
    assert_eq!(run(&set(2, "x"), None), Ok((Done::Length(3), gives("\0\0x", None))));
    assert_eq!(run(&set(9, ""), None), Ok((Done::Length(0), None)));
    assert_eq!(run(&set(u64::MAX, "x"), None), Err(ActError::TooLong));
    assert_eq!(run(&set(VALUE_BYTES_MAX as u64, "x"), None), Err(ActError::TooLong));
    let long = Raw(Bytes::from(vec![0; VALUE_BYTES_MAX]));
    let full = Content { value: long.0, expires: None };
    assert_eq!(run(&append("x"), Some(&full)), Err(ActError::TooLong));
}

#[test]
fn putting_and_deleting() {
    let now = has("v", Some(2000));
    let with = |expiry| Act::Put { value: key("w"), expiry };
    assert_eq!(run(&with(Expiry::Keep), Some(&now)), Ok((Done::Put, gives("w", Some(2000)))));
    assert_eq!(run(&with(Expiry::Never), Some(&now)), Ok((Done::Put, gives("w", None))));
    assert_eq!(run(&with(Expiry::At(1)), None), Ok((Done::Put, gives("w", Some(1)))));
    assert_eq!(run(&with(Expiry::At(PASSED)), None), Ok((Done::Put, None)));
    let gone = Ok((Done::Put, Some(Effect::Delete)));
    assert_eq!(run(&with(Expiry::At(PASSED)), Some(&now)), gone);
    let when = |condition| Act::PutIf { condition, value: key("w"), expiry: Expiry::Never };
    let holds = Ok((Done::Put, gives("w", None)));
    let fails = Err(ActError::Condition);
    assert_eq!(run(&when(Condition::Absent), None), holds);
    assert_eq!(run(&when(Condition::Absent), Some(&now)), fails);
    assert_eq!(run(&when(Condition::Present), Some(&now)), holds);
    assert_eq!(run(&when(Condition::Present), None), fails);
    assert_eq!(run(&when(Condition::Version(Version(7))), None), holds);
    assert_eq!(run(&when(Condition::Version(Version(6))), Some(&now)), fails);
    assert_eq!(run(&Act::Delete, None), Ok((Done::Deleted { existed: false }, None)));
    let deleted = Ok((Done::Deleted { existed: true }, Some(Effect::Delete)));
    assert_eq!(run(&Act::Delete, Some(&now)), deleted);
    assert_eq!(run(&put("w"), None), holds);
}

#[test]
fn expiring() {
    let (plain, timed) = (has("v", None), has("v", Some(2000)));
    let expire = |at, when| Act::Expire { at: Some(at), when };
    let set = |at| Ok((Done::Expiry { changed: true }, gives("v", Some(at))));
    let stays = Ok((Done::Expiry { changed: false }, None));
    assert_eq!(run(&expire(1500, When::Always), None), stays);
    assert_eq!(run(&expire(1500, When::Always), Some(&plain)), set(1500));
    assert_eq!(run(&expire(1500, When::IfNone), Some(&plain)), set(1500));
    assert_eq!(run(&expire(1500, When::IfNone), Some(&timed)), stays);
    assert_eq!(run(&expire(1500, When::IfSome), Some(&plain)), stays);
    assert_eq!(run(&expire(1500, When::IfSome), Some(&timed)), set(1500));
    assert_eq!(run(&expire(2500, When::IfLater), Some(&timed)), set(2500));
    assert_eq!(run(&expire(1500, When::IfLater), Some(&timed)), stays);
    assert_eq!(run(&expire(2500, When::IfLater), Some(&plain)), stays);
    assert_eq!(run(&expire(1500, When::IfSooner), Some(&timed)), set(1500));
    assert_eq!(run(&expire(2500, When::IfSooner), Some(&plain)), set(2500));
    assert_eq!(run(&expire(1500, When::IfSomeAndSooner), Some(&timed)), set(1500));
    assert_eq!(run(&expire(1500, When::IfSomeAndSooner), Some(&plain)), stays);
    assert_eq!(run(&expire(2500, When::IfSomeAndSooner), Some(&timed)), stays);
    assert_eq!(run(&expire(PASSED, When::IfLater), Some(&timed)), stays);
    let gone = Ok((Done::Expiry { changed: true }, Some(Effect::Delete)));
    assert_eq!(run(&expire(PASSED, When::IfSooner), Some(&timed)), gone);
    assert_eq!(run(&expire(PASSED, When::Always), Some(&plain)), gone);
    let persist = Act::Expire { at: None, when: When::Always };
    assert_eq!(run(&persist, Some(&plain)), stays);
    let dropped = Ok((Done::Expiry { changed: true }, gives("v", None)));
    assert_eq!(run(&persist, Some(&timed)), dropped);
}
