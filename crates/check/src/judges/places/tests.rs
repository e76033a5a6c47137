//! What is right is told right, and each rule condemns what breaks it.

use super::*;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Writes of the key `k`, one after the other: value, place and the place that was seen.
fn wrote(writes: &[(Option<&str>, &str, &str)]) -> History {
    let mut history = History::default();
    for (number, (value, place, after)) in writes.iter().enumerate() {
        let now = 10 * number as u64;
        let number = history.begin(&bytes("k"), value.map(bytes), bytes(after), now);
        let ending = match *place {
            "?" => Ending::Unknown,
            "!" => Ending::Refused,
            place => Ending::Placed(bytes(place)),
        };
        history.end(number, ending, now + 5);
    }
    history
}

fn read(value: Option<&str>, place: Option<&str>, after: &str, begun: u64) -> Read {
    let (value, place) = (value.map(bytes), place.map(bytes));
    Read { key: bytes("k"), value, after: bytes(after), place, begun, ended: begun + 5 }
}

fn told(history: &History) -> Result<(u64, u64), String> {
    judge(history).map(|rates| (rates.reads, rates.stale))
}

#[test]
fn what_is_right_is_told_right() {
    let mut history = wrote(&[
        (Some("a"), "1", ""),
        (Some("b"), "3", "1"),
        (None, "5", ""),
        (Some("c"), "?", ""),
    ]);
    history.read_at_quiescence(read(None, None, "", 100));
    history.read_at_quiescence(read(Some("b"), None, "", 100));
    assert!(!history.is_agreed(), "they are asked again");
    for (value, place) in [(Some("a"), "2"), (Some("b"), "4"), (None, "6"), (Some("c"), "7")] {
        history.read(read(value, Some(place), "1", 100));
    }
    history.read(read(Some("b"), None, "4", 100));
    history.read_at_quiescence(read(None, Some("8"), "", 200));
    assert_eq!(told(&history), Ok((5, 0)));
    history.read_at_quiescence(read(None, Some("9"), "", 200));
    assert!(history.is_agreed());
    assert_eq!(told(&history), Ok((5, 0)));
}

#[test]
fn what_is_never_promised_is_condemned() {
    let base = [(Some("a"), "1", ""), (Some("b"), "3", "")];
    let refused = [(Some("a"), "!", "")];
    let table = [
        (wrote(&[(Some("a"), "1", ""), (Some("b"), "1", "")]), None, "two writes"),
        (wrote(&[(Some("a"), "1", "2")]), None, "not after"),
        (wrote(&base), Some(read(Some("x"), Some("4"), "", 100)), "nobody had written"),
        (wrote(&base), Some(read(Some("b"), Some("4"), "", 0)), "nobody had written"),
        (wrote(&refused), Some(read(Some("a"), Some("4"), "", 100)), "was refused"),
        (wrote(&base), Some(read(Some("b"), Some("4"), "5", 100)), "not after"),
    ];
    for (mut history, read, words) in table {
        read.into_iter().for_each(|read| history.read(read));
        let told = told(&history).expect_err("it is broken");
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_write_that_is_gone_in_the_end_is_lost_and_hosts_must_agree() {
    let writes = [(Some("a"), "1", ""), (Some("b"), "3", "")];
    for (values, words) in [
        (&[Some("a")][..], "is lost"),
        (&[None], "is lost"),
        (&[Some("b"), Some("a")], "hosts say"),
    ] {
        let mut history = wrote(&writes);
        for value in values {
            history.read_at_quiescence(read(*value, None, "", 100));
        }
        let told = told(&history).expect_err("it is broken");
        assert!(told.contains(words), "{told}");
        let mut unsure = history.clone();
        unsure.doubt(0);
        assert_eq!(judge(&unsure).is_ok(), values.len() == 1, "nothing is certain any more");
    }
}

#[test]
fn what_was_acknowledged_before_a_loss_holds() {
    let mut history = wrote(&[(Some("a"), "1", "")]);
    let late = history.begin(&bytes("k"), Some(bytes("b")), bytes(""), 10 * LATE_NS);
    history.end(late, Ending::Placed(bytes("3")), 10 * LATE_NS + 5);
    history.doubt(10 * LATE_NS);
    for (value, is_right) in [(Some("a"), true), (Some("b"), true), (None, false)] {
        let mut history = history.clone();
        history.read_at_quiescence(read(value, None, "", 12 * LATE_NS));
        assert_eq!(judge(&history).is_ok(), is_right, "{value:?}");
    }
}

#[test]
fn what_nobody_knows_excuses_only_what_it_may_have_replaced() {
    let mut history = wrote(&[(None, "?", ""), (Some("a"), "1", "")]);
    history.read(read(None, Some("2"), "", 100));
    assert_eq!(told(&history), Ok((1, 0)), "the delete may have come later");
    let late = history.begin(&bytes("k"), Some(bytes("b")), bytes(""), 10 * LATE_NS);
    history.end(late, Ending::Placed(bytes("3")), 10 * LATE_NS + 5);
    history.read(read(None, Some("4"), "", 11 * LATE_NS));
    assert_eq!(told(&history), Ok((2, 1)), "it was given up long before");
    history.read_at_quiescence(read(None, None, "", 12 * LATE_NS));
    assert!(told(&history).expect_err("it is gone").contains("is lost"));
}

#[test]
fn a_read_behind_a_token_shows_what_its_client_had_seen() {
    let mut history = wrote(&[(Some("a"), "1", ""), (Some("b"), "3", "")]);
    for (value, after) in [("a", "2"), ("b", "3"), ("a", "3"), ("a", "")] {
        history.read(read(Some(value), None, after, 100));
    }
    assert_eq!(told(&history), Ok((3, 1)));
}

#[test]
fn what_should_be_rare_is_counted() {
    let mut history = wrote(&[(Some("a"), "1", ""), (Some("b"), "3", ""), (None, "5", "")]);
    let reads = [
        (Some("a"), "4", true),
        (None, "4", true),
        (Some("b"), "6", true),
        (Some("b"), "4", false),
        (None, "6", false),
    ];
    for (value, place, _) in reads {
        history.read(read(value, Some(place), "", 100));
    }
    // It began before the second write was acknowledged.
    history.read(read(Some("a"), Some("4"), "", 12));
    let stale = reads.iter().filter(|(_, _, is_stale)| *is_stale).count() as u64;
    assert_eq!(told(&history), Ok((6, stale)));
    history.read(read(Some("b"), Some("2"), "", 100));
    assert_eq!(judge(&history).map(|rates| rates.early), Ok(1), "before it was written");
}

#[test]
fn listings_name_what_was_written_once_and_lack_what_was_there_seldom() {
    let listing = |keys: &[&str], begun| {
        let keys = keys.iter().map(|key| bytes(key)).collect();
        Listing { keys, begun, ended: begun + 5 }
    };
    let late = 100 + LATE_NS;
    let written = [(Some("a"), "1", "")];
    for (keys, begun, is_right) in [
        (&["k"][..], late, Ok((1, 0))),
        (&[], late, Ok((1, 1))),
        (&[], 5, Ok((0, 0))),
        (&["k", "k"], late, Err("twice")),
        (&["other"], late, Err("nobody had written")),
    ] {
        let mut history = wrote(&written);
        history.list(listing(keys, begun));
        match (told(&history), is_right) {
            (Err(what), Err(part)) => assert!(what.contains(part), "{what}"),
            (told, right) => assert_eq!(told.map_err(|_| ""), right, "{keys:?} at {begun}"),
        }
    }
    // What was refused is not there; of what may yet be deleted nothing is known.
    let mut history = wrote(&[(Some("a"), "!", "")]);
    history.list(listing(&["k"], late));
    assert!(told(&history).is_err());
    let mut history = wrote(&[(Some("a"), "1", ""), (None, "?", "")]);
    history.list(listing(&[], late));
    assert_eq!(told(&history), Ok((0, 0)));
}

#[test]
fn in_the_end_all_that_is_there_is_listed_and_nothing_else() {
    for (value, keys, is_right) in [
        (Some("a"), &["k"][..], true),
        (Some("a"), &[], false),
        (Some("a"), &["k", "k"], false),
        (None, &["k"], false),
        (None, &[], true),
    ] {
        let mut history = wrote(&[(Some("a"), "1", ""), (None, "?", "")]);
        history.read_at_quiescence(read(value, None, "", 100));
        history.list_at_quiescence(keys.iter().map(|key| bytes(key)).collect());
        assert_eq!(told(&history).is_ok(), is_right, "{value:?} {keys:?}");
    }
}
