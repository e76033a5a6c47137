use super::*;
use crate::history::{ClientId, Completion, History, Recorder};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use proptest::prelude::*;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::operation::Cursor;
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::transaction::{Condition, Copied, Item, ItemOutcome};

fn text_of(history: &History) -> String {
    let mut text = String::new();
    write(history, &mut text).expect("a string takes any text");
    text
}

fn bytes() -> impl Strategy<Value = Bytes> {
    let any = prop::collection::vec(any::<u8>(), 0..6).prop_map(Bytes::from);
    prop_oneof![any, "[a-z\"\\\\é\n]{0,4}".prop_map(Bytes::from)]
}

fn cursor() -> impl Strategy<Value = Cursor> {
    (any::<u64>(), bytes()).prop_map(|(token, key)| Cursor { token, key })
}

fn item() -> impl Strategy<Value = (Item, ItemOutcome)> {
    let condition = prop_oneof![
        Just(Condition::Absent),
        Just(Condition::Present),
        bytes().prop_map(Condition::Value)
    ];
    prop_oneof![
        (bytes(), condition)
            .prop_map(|(key, holds)| (Item::Check { key, holds }, ItemOutcome::Checked)),
        (bytes(), prop::option::of(bytes()))
            .prop_map(|(key, value)| (Item::Get { key }, ItemOutcome::Value(value))),
        (bytes(), bytes(), expiry()).prop_map(|(key, value, expiry)| (
            Item::Put { key, value, expiry },
            ItemOutcome::Written
        )),
        (bytes(), prop::option::of(any::<i64>().prop_map(WallTime)), when(), any::<bool>())
            .prop_map(|(key, at, when, changed)| (
                Item::Expire { key, at, when },
                ItemOutcome::Expiry { changed }
            )),
        (bytes(), lifetime())
            .prop_map(|(key, told)| (Item::Lifetime { key }, ItemOutcome::Lifetime(told))),
        (bytes(), any::<bool>())
            .prop_map(|(key, existed)| (Item::Delete { key }, ItemOutcome::Deleted { existed })),
        (bytes(), bytes(), any::<[bool; 2]>(), copied()).prop_map(
            |(key, to, [replaces, removes], told)| (
                Item::Copy { key, to, replaces, removes },
                ItemOutcome::Copied(told)
            )
        ),
        (bytes(), change(), changed())
            .prop_map(|(key, change, told)| (Item::Change { key, change }, told)),
    ]
}

fn copied() -> impl Strategy<Value = Copied> {
    prop_oneof![Just(Copied::Done), Just(Copied::NoSource), Just(Copied::Occupied)]
}

fn expiry() -> impl Strategy<Value = Expiry> {
    let at = any::<i64>().prop_map(|at| Expiry::At(WallTime(at)));
    prop_oneof![Just(Expiry::Never), Just(Expiry::Keep), at]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        Just(When::Always),
        Just(When::IfNone),
        Just(When::IfSome),
        Just(When::IfLater),
        Just(When::IfSooner),
        Just(When::IfSomeAndSooner),
    ]
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    let until = any::<i64>().prop_map(|at| Lifetime::Until(WallTime(at)));
    prop_oneof![Just(Lifetime::Absent), Just(Lifetime::Endless), until]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<bool>(), bytes(), expiry()).prop_map(|(exists, value, expiry)| Change::PutIf {
            exists,
            value,
            expiry
        }),
        any::<i64>().prop_map(Change::Add),
        bytes().prop_map(Change::AddFloat),
        bytes().prop_map(Change::Append),
        (any::<u64>(), bytes()).prop_map(|(offset, bytes)| Change::SetRange { offset, bytes }),
    ]
}

fn changed() -> impl Strategy<Value = ItemOutcome> {
    prop_oneof![
        Just(ItemOutcome::Changed(Changed::Put)),
        any::<i64>().prop_map(|number| ItemOutcome::Changed(Changed::Integer(number))),
        bytes().prop_map(|number| ItemOutcome::Changed(Changed::Float(number))),
        any::<u64>().prop_map(|length| ItemOutcome::Changed(Changed::Length(length))),
        prop_oneof![
            Just(Unchanged::Condition),
            Just(Unchanged::NotAnInteger),
            Just(Unchanged::NotAFloat),
            Just(Unchanged::Overflow),
            Just(Unchanged::NotFinite),
            Just(Unchanged::TooLong),
        ]
        .prop_map(ItemOutcome::Unchanged),
    ]
}

fn transaction() -> impl Strategy<Value = (Operation, Completion)> {
    prop::collection::vec(item(), 0..4).prop_map(|both| {
        let is_check = |(item, _): &(Item, ItemOutcome)| matches!(item, Item::Check { .. });
        let unmet = both.iter().position(is_check).filter(|_| both.len() == 3);
        let (items, told) = both.into_iter().unzip();
        let done = Completion::Transacted(told);
        let completion = unmet.map_or(done, |item| Completion::Unmet { item });
        (Operation::Transact { items, name: None }, completion)
    })
}

fn operation() -> impl Strategy<Value = (Operation, Completion)> {
    let pages = (prop::collection::vec(bytes(), 0..3), prop::option::of(cursor()));
    let done = prop_oneof![
        (bytes(), prop::option::of(bytes()))
            .prop_map(|(key, value)| (Operation::get(key), Completion::Value(value))),
        (bytes(), bytes())
            .prop_map(|(key, value)| (Operation::put(key, value), Completion::Written)),
        (bytes(), any::<bool>())
            .prop_map(|(key, existed)| (Operation::delete(key), Completion::Deleted { existed })),
        (cursor(), pages).prop_map(|(from, (keys, next))| (
            Operation::Scan { from, limit: 0 },
            Completion::Page { keys, next }
        )),
    ];
    let done = prop_oneof![done, transaction()];
    let fate = prop::option::of(prop_oneof![Just(Completion::Refused), Just(Completion::Unknown)]);
    (done, fate).prop_map(|((operation, done), fate)| (operation, fate.unwrap_or(done)))
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec((operation(), 0u32..4, 0u64..9, 0u64..9, any::<bool>()), 0..9),
        healed in prop::option::of(0u64..20),
    ) {
        let mut recorder = Recorder::new();
        for ((operation, completion), client, at, took, is_completed) in rows {
            let id = recorder.invoke(ClientId(client), operation, Time(at));
            if is_completed {
                recorder.complete(id, completion, Time(at + took));
            }
        }
        if let Some(time) = healed {
            recorder.heal(Time(time));
        }
        let history = recorder.into_history();
        let text = text_of(&history);
        let again = read(&text);
        prop_assert_eq!(again.as_ref(), Ok(&history));
        prop_assert_eq!(text_of(&again.expect("compared above")), text);
    }

    #[test]
    fn no_line_makes_the_reader_fail_otherwise_than_by_saying_so(lines in ".{0,80}") {
        let text = [HEADER, "\n", &lines].concat();
        if let Err(error) = read(&text) {
            prop_assert!(error.line >= 2);
        }
    }
}

#[test]
fn the_shape_of_a_file_stays() {
    let file = r#"{"format":"quorate-history","version":1}
{"event":"invoke","id":0,"client":3,"at_ns":1000,"operation":"put","key":"k","value":"v\"w"}
{"event":"complete","id":0,"at_ns":2000,"outcome":"written"}
{"event":"invoke","id":1,"client":4,"at_ns":2500,"operation":"delete","key":{"hex":"00ff"}}
{"event":"complete","id":1,"at_ns":3000,"outcome":"deleted","existed":false}
{"event":"invoke","id":2,"client":4,"at_ns":3100,"operation":"put","key":"k","value":""}
{"event":"complete","id":2,"at_ns":3200,"outcome":"unknown"}
{"event":"invoke","id":3,"client":4,"at_ns":3300,"operation":"get","key":"k"}
{"event":"complete","id":3,"at_ns":3400,"outcome":"refused"}
{"event":"heal","at_ns":5000}
{"event":"invoke","id":4,"client":3,"at_ns":6000,"operation":"get","key":"k"}
{"event":"complete","id":4,"at_ns":7000,"outcome":"value","value":null}
{"event":"invoke","id":5,"client":3,"at_ns":8000,"operation":"scan","from":0}
{"event":"complete","id":5,"at_ns":9000,"outcome":"page","keys":["k",{"hex":"00ff"}],"next":null}
{"event":"invoke","id":6,"client":3,"at_ns":9500,"operation":"get","key":"k"}
"#;
    let history = read(file).expect("the file is right");
    assert_eq!(text_of(&history), file);
    assert_eq!(history.entries().len(), 7);
    assert_eq!(history.healed(), Some(Time(5000)));
}

/// What is said of an operation that there is not.
const UNKNOWN_OPERATION: &str = "unknown operation \"incr\"; expected \"get\", \"put\", \
                                 \"delete\", \"scan\", \"transact\" or \"tree\"";

#[test]
fn each_fault_is_named_with_its_line() {
    let first = r#"{"event":"invoke","id":7,"client":1,"at_ns":10,"operation":"get","key":"k"}"#;
    let second = r#"{"event":"complete","id":7,"at_ns":20,"outcome":"value","value":"v"}"#;
    let cases = [
        (r#"{"event":"#, "not a JSON object: EOF while parsing a value at line 1 column 9"),
        ("[]", "not a JSON object: invalid type: sequence, expected a map at line 1 column 0"),
        (r#"{"at_ns":1}"#, r#"field "event" is missing"#),
        (r#"{"event":"end"}"#, r#"unknown event "end"; expected "invoke", "complete" or "heal""#),
        (
            r#"{"event":"heal","at_ns":-1}"#,
            r#"field "at_ns" is -1; expected a whole number from 0 to 18446744073709551615"#,
        ),
        (r#"{"event":"heal","at_ns":1,"at":1}"#, r#"field "at" does not belong in the heal"#),
        (
            r#"{"event":"invoke","id":1,"client":4294967296,"at_ns":1,"operation":"get","key":"k"}"#,
            "client 4294967296 is over the limit of 4294967295",
        ),
        (
            r#"{"event":"invoke","id":1,"client":1,"at_ns":1,"operation":"incr","key":"k"}"#,
            UNKNOWN_OPERATION,
        ),
        (
            r#"{"event":"invoke","id":1,"client":1,"at_ns":1,"operation":"get","key":{"hex":"0g"}}"#,
            r#"field "key" is {"hex":"0g"}; expected a string or {"hex":"…"} with an even number of hex digits"#,
        ),
        (first, "operation 7 was invoked before; every id is used once"),
        (
            r#"{"event":"complete","id":8,"at_ns":20,"outcome":"refused"}"#,
            "operation 8 is completed but no line before this one invokes it",
        ),
        (second, "operation 7 was completed before, on line 3"),
    ];
    for (line, problem) in cases {
        let text = [HEADER, first, second, line].join("\n");
        let expected = RecordedError { line: 4, problem: problem.into() };
        assert_eq!(read(&text), Err(expected), "{line}");
    }
    let completions = [
        (
            r#"{"event":"complete","id":7,"at_ns":9,"outcome":"value","value":null}"#,
            "operation 7 is completed at 9 ns, before its invocation at 10 ns",
        ),
        (
            r#"{"event":"complete","id":7,"at_ns":20,"outcome":"value"}"#,
            r#"field "value" is missing"#,
        ),
        (
            r#"{"event":"complete","id":7,"at_ns":20,"outcome":"value","value":3}"#,
            r#"field "value" is 3; expected a string or {"hex":"…"} with an even number of hex digits, or null"#,
        ),
        (
            r#"{"event":"complete","id":7,"at_ns":20,"outcome":"written"}"#,
            r#"outcome "written" does not fit operation 7, which is a get; expected "value", "refused" or "unknown""#,
        ),
        (
            r#"{"event":"complete","id":7,"at_ns":20,"outcome":"lost"}"#,
            "unknown outcome \"lost\"; expected \"value\", \"written\", \"deleted\", \"page\", \
             \"transacted\", \"unmet\", \"tree\", \"refused\" or \"unknown\"",
        ),
        (
            r#"{"event":"complete","id":7,"at_ns":20,"outcome":"page","keys":"k","next":null}"#,
            r#"field "keys" is "k"; expected a list of keys"#,
        ),
    ];
    for (line, problem) in completions {
        let text = [HEADER, "", first, line].join("\n");
        let expected = RecordedError { line: 4, problem: problem.into() };
        assert_eq!(read(&text), Err(expected), "{line}");
    }
}

#[test]
fn the_first_line_must_say_what_the_file_is() {
    let cases: Vec<(&str, String)> = [
        ("", "line 1: the file is empty; expected "),
        ("\n\n", "line 3: the file is empty; expected "),
        (r#"{"event":"heal"}"#, "line 1: field \"format\" is missing; the first line must be "),
        (r#"{"format":"x","version":1}"#, "line 1: the format is \"x\"; the first line must be "),
    ]
    .map(|(text, problem)| (text, [problem, HEADER].concat()))
    .into();
    for (text, problem) in cases {
        assert_eq!(read(text).map_err(|error| error.to_string()), Err(problem));
    }
    let newer = r#"{"format":"quorate-history","version":2}"#;
    let problem = "line 1: version 2 of the format; this build reads version 1";
    assert_eq!(read(newer).map_err(|error| error.to_string()), Err(problem.into()));
}

/// A file of one transaction and how it ended.
fn file(items: &str, ended: &str) -> String {
    let invoke = r#"{"event":"invoke","id":0,"client":1,"at_ns":1,"operation":"transact","items":"#;
    let complete = r#"{"event":"complete","id":0,"at_ns":2,"outcome":"#;
    [HEADER, "\n", invoke, items, "}\n", complete, ended, "}\n"].concat()
}

#[test]
fn a_transaction_is_recorded_with_its_items_and_what_each_was_told() {
    let row = |name: &str, rest: &str| format!(r#"{{"item":"{name}","key":"k",{rest}}}"#);
    let checks = [row("check", r#""is":"absent""#), row("check", r#""value":"v""#)];
    let all = format!("[{},{}]", checks.join(","), row("put", r#""value":"w""#));
    let unmet = file(&all, r#""unmet","item":1"#);
    let items = r#"[{"item":"get","key":"k"},{"item":"delete","key":{"hex":"ff"}}]"#;
    let told = r#"[{"outcome":"value","value":null},{"outcome":"deleted","existed":false}]"#;
    let done = file(items, &format!(r#""transacted","items":{told}"#));
    for file in [unmet, done] {
        assert_eq!(text_of(&read(&file).expect("the file is right")), file);
    }
    let cases = [
        (
            r#"[{"item":"get","key":"k","value":"v"}]"#,
            r#"field "value" does not belong in the item 0 of "items""#,
        ),
        (
            r#"[{"item":"get","key":"k"},{"item":"scan","key":"k"}]"#,
            "item 1 of \"items\": unknown item \"scan\"; expected \"check\", \"get\", \"put\", \
             \"delete\", \"copy\", \"expire\", \"lifetime\", \"put_if\", \"add\", \"add_float\", \
             \"append\" or \"set_range\"",
        ),
        ("[7]", r#"item 0 of "items" is no object"#),
        ("7", r#"field "items" is no list; expected a list of objects"#),
    ];
    for (items, problem) in cases {
        let expected = RecordedError { line: 2, problem: problem.into() };
        assert_eq!(read(&file(items, r#""refused""#)), Err(expected), "{items}");
    }
    let short = read(&file(items, r#""transacted","items":[]"#)).expect_err("it has two items");
    assert!(short.problem.starts_with(r#"outcome "transacted" does not fit"#), "{short}");
    let other = read(&file(items, r#""unmet","item":1"#)).expect_err("it is no check");
    assert!(other.problem.starts_with(r#"outcome "unmet" does not fit"#), "{other}");
}
