//! What outcomes add up to.

use super::super::many::Each;
use super::super::requests::frame::Command;
use super::*;
use alloc::vec;
use quorate_kernel::operation::Refusal;

#[test]
fn size_is_exact_at_the_end_and_a_density_before() {
    assert_eq!(size(7, None), 7);
    assert_eq!(size(1000, Some(1 << 63)), 2000);
    assert_eq!(size(1000, Some(1 << 54)), 1_024_000);
    assert_eq!(size(1000, Some(1)), i64::MAX);
}

#[test]
fn keys_are_counted_over_short_pages() {
    let page = |keys: usize, next: Option<u64>| {
        let next = next.map(Cursor::at);
        Outcome::Page { keys: vec![Bytes::new(); keys], next }
    };
    let mut pages = Pages::size();
    assert_eq!(pages.on_outcome(page(0, Some(10))), None);
    assert_eq!(pages.operation(), Operation::Scan { from: Cursor::at(10), limit: PAGE_KEYS });
    assert_eq!(pages.on_outcome(page(1, Some(20))), None);
    assert_eq!(pages.on_outcome(page(2, None)), Some(CommandReply::Integer(3)));

    let mut pages = Pages::size();
    assert_eq!(pages.on_outcome(page(600, Some(1 << 62))), None);
    assert_eq!(pages.on_outcome(page(401, Some(1 << 63))), Some(CommandReply::Integer(2002)));
}

/// That more may follow a thousand keys does not say that more are there.
#[test]
fn a_thousand_keys_are_counted_to_the_end() {
    let page = |keys: usize, next: Option<u64>| {
        let next = next.map(Cursor::at);
        Outcome::Page { keys: vec![Bytes::new(); keys], next }
    };
    let mut pages = Pages::size();
    assert_eq!(pages.on_outcome(page(600, Some(1 << 62))), None);
    assert_eq!(pages.on_outcome(page(400, Some(1 << 63))), None, "a thousand, and more may follow");
    let more = Operation::Scan { from: Cursor::at(1 << 63), limit: PAGE_KEYS };
    assert_eq!(pages.operation(), more);
    assert_eq!(pages.on_outcome(page(0, None)), Some(CommandReply::Integer(1000)));
    let mut pages = Pages::size();
    assert_eq!(pages.on_outcome(page(1000, Some(1 << 63))), None);
    assert_eq!(pages.on_outcome(page(1, None)), Some(CommandReply::Integer(1001)));
    let mut pages = Pages::size();
    assert_eq!(pages.on_outcome(page(1000, Some(1 << 63))), None);
    let estimate = CommandReply::Integer(1335);
    assert_eq!(pages.on_outcome(page(1, Some(3 << 62))), Some(estimate), "one more ends the count");
}

fn command(words: &[&str]) -> Command {
    let mut input = bytes::BytesMut::new();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    super::super::client::write_command(&mut input, &words);
    let parsed = super::super::requests::parse::Parser::new(1000).next(&mut input);
    parsed.expect("well formed").expect("whole")
}

fn mset(outcomes: [Outcome; 3]) -> CommandReply {
    let mut many = Many::new(Each::Put, command(&["MSET", "a", "1", "b\n", "2", "c", "3"]));
    assert_eq!(many.total(), 3);
    while many.issue().is_some() {}
    for (index, outcome) in outcomes.into_iter().enumerate() {
        many.on_outcome(index as u32, outcome);
    }
    many.finish()
}

#[test]
fn mset_says_which_key_is_in_which_state() {
    let absent = || Outcome::Refused(Refusal::NoQuorum { reached: 1, needed: 2 });
    let unknown = || Outcome::Refused(Refusal::OutcomeUnknown);
    assert_eq!(
        mset([Outcome::written(), Outcome::written(), Outcome::written()]),
        CommandReply::OK
    );
    let text = |answer| match answer {
        CommandReply::Error(text) => text,
        other => panic!("no error: {other:?}"),
    };
    assert!(text(mset([absent(), absent(), absent()])).starts_with("NOQUORUM 1 of 2"));
    assert_eq!(
        text(mset([Outcome::written(), unknown(), absent()])),
        "UNKNOWNOUTCOME not every key was surely written; written: 'a'; unknown: 'b\\n'; \
         unchanged: 'c'"
    );
    assert_eq!(
        text(mset([absent(), Outcome::written(), absent()])),
        "UNKNOWNOUTCOME not every key was surely written; written: 'b\\n'; unchanged: 'a' 'c'"
    );
}

#[test]
fn random_key_wraps_once_and_ends() {
    let page = |keys: Vec<Bytes>, next: Option<u64>| {
        let next = next.map(Cursor::at);
        Outcome::Page { keys, next }
    };
    let mut pages = Pages::random(77);
    assert_eq!(pages.operation(), Operation::Scan { from: Cursor::at(77), limit: 1 });
    assert_eq!(pages.on_outcome(page(vec![], Some(78))), None);
    let all = Operation::Scan { from: Cursor::at(78), limit: PAGE_KEYS };
    assert_eq!(pages.operation(), all, "what was deleted is passed by in large steps");
    let mut pages = Pages::random(77);
    assert_eq!(pages.on_outcome(page(vec![], None)), None);
    assert_eq!(pages.operation(), Operation::Scan { from: Cursor::at(0), limit: 1 });
    assert_eq!(pages.on_outcome(page(vec![], None)), Some(CommandReply::Bulk(None)));
    let mut pages = Pages::random(77);
    let key = Bytes::from_static(b"k");
    let found = pages.on_outcome(page(vec![key.clone()], Some(99)));
    assert_eq!(found, Some(CommandReply::Bulk(Some(key))));
}

#[test]
fn a_scan_tells_all_keys_of_the_token_where_it_began() {
    let key = |name: &'static str| Bytes::from_static(name.as_bytes());
    let within = |token, name| Cursor { token, key: key(name) };
    let page = |names: &[&'static str], next| Outcome::Page {
        keys: names.iter().map(|name| key(name)).collect(),
        next,
    };
    let mut pages = Pages::scan(7, 2, None, false);
    assert_eq!(
        pages.on_outcome(page(&["samehead1", "samehead2"], Some(within(7, "samehead3")))),
        None
    );
    assert_eq!(pages.operation(), Operation::Scan { from: within(7, "samehead3"), limit: 2 });
    assert_eq!(pages.held(), 2 * (9 + size_of::<Bytes>()));
    // It has come to the next token, of which all come with the next page.
    let token = u64::from_be_bytes(*b"samehear");
    let next = Some(within(token, "samehear2"));
    let told = pages.on_outcome(page(&["samehead3", "samehear1"], next));
    let all = ["samehead1", "samehead2", "samehead3"];
    assert_eq!(told, Some(CommandReply::Page(token, all.map(key).to_vec())));
    // Where the order is another one, keys that begin alike have nothing in common.
    let mut pages = Pages::scan(7, 2, None, false);
    let names = ["session:1", "session:2"];
    let told = pages.on_outcome(page(&names, Some(within(9, "session:3"))));
    assert_eq!(told, Some(CommandReply::Page(9, names.map(key).to_vec())));
    let mut pages = Pages::scan(9, 2, Some(key("*e")), false);
    let told = pages.on_outcome(page(&["d", "e"], None));
    assert_eq!(told, Some(CommandReply::Page(0, [key("e")].to_vec())));
}

#[test]
fn a_token_of_too_many_keys_is_refused_with_what_to_do() {
    assert_eq!(Pages::scan(7, 1, None, false).held_max, REPLY_BYTES_MAX);
    let next = |token| Some(Cursor { token, key: Bytes::from_static(b"samehead9") });
    let page = |keys: &[&'static str], next| Outcome::Page {
        keys: keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect(),
        next,
    };
    let refused = |begin: u64, pattern: Option<&'static str>, pages: [&[&'static str]; 2]| {
        let pattern = pattern.map(|pattern| Bytes::from_static(pattern.as_bytes()));
        let mut scan = Pages { held_max: 20, ..Pages::scan(begin, 1, pattern, false) };
        let [first, second] = pages;
        assert_eq!(scan.on_outcome(page(first, next(begin))), None);
        match scan.on_outcome(page(second, None)) {
            Some(CommandReply::Error(text)) => text,
            other => panic!("no error: {other:?}"),
        }
    };
    let (short, long): (&[&str], &[&str]) = (&["samehead1"], &["samehead2345"]);
    let text = refused(7, None, [short, long]);
    assert_eq!(
        text,
        "ERR the reply of SCAN is over the limit of 20 bytes: ask for fewer keys: all that share \
         the first 8 bytes of cursor 7 come together; go on behind them with 8; gRPC and HTTP list \
         them"
    );
    let last = refused(u64::MAX, None, [short, long]);
    assert!(last.ends_with(" of cursor 18446744073709551615 come together"), "nothing is behind");
    assert_eq!(refused(7, Some("same*"), [short, long]), text, "keys that match count");

    let fits = |pattern: Option<&'static str>, second: &[&'static str]| {
        let pattern = pattern.map(|pattern| Bytes::from_static(pattern.as_bytes()));
        let mut scan = Pages { held_max: 20, ..Pages::scan(7, 1, pattern, false) };
        assert_eq!(scan.on_outcome(page(short, next(7))), None);
        scan.on_outcome(page(second, None))
    };
    let found = |keys: &[&'static str]| {
        let keys = keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        Some(CommandReply::Page(0, keys))
    };
    let whole = "samehead234";
    assert_eq!(fits(None, &[whole]), found(&["samehead1", whole]), "the limit itself is fine");
    assert_eq!(fits(Some("*1"), long), found(&["samehead1"]), "others take no room");
}

#[test]
fn too_many_keys_for_a_reply_are_refused_with_what_to_use() {
    let whole = Pages::keys(Bytes::from_static(b"*"));
    assert_eq!(whole.held_max, REPLY_BYTES_MAX);
    let most = 2 * (2 + size_of::<Bytes>()) - 1;
    let mut pages = Pages { held_max: most, ..whole };
    let page = |next: Option<u64>| {
        let next = next.map(Cursor::at);
        Outcome::Page { keys: vec![Bytes::from_static(b"ab")], next }
    };
    assert_eq!(pages.on_outcome(page(Some(5))), None);
    let text = format!(
        "ERR the reply of KEYS is over the limit of {most} bytes: ask for fewer keys with SCAN"
    );
    let refused = Some(CommandReply::Error(text));
    assert_eq!(pages.on_outcome(page(Some(6))), refused);
}

#[test]
fn a_page_that_does_not_go_on_ends_the_listing() {
    let mut pages = Pages::keys(Bytes::from_static(b"*"));
    let page = |next: Option<u64>| {
        let next = next.map(Cursor::at);
        Outcome::Page { keys: vec![Bytes::from_static(b"k")], next }
    };
    assert_eq!(pages.on_outcome(page(Some(5))), None);
    assert_eq!(pages.held(), 1 + size_of::<Bytes>(), "what the list takes counts");
    let both = vec![Bytes::from_static(b"k"); 2];
    assert_eq!(pages.on_outcome(page(Some(5))), Some(CommandReply::Keys(both)));
}

/// A few keys of a page that match must not keep the others in memory, nor the records that came
/// with them.
#[test]
fn keys_that_match_keep_nothing_else_in_memory() {
    let page = Bytes::from(vec![b'k'; 1 << 20]);
    let mut pages = Pages::keys(Bytes::from_static(b"kk"));
    let keys = vec![page.slice(..1), page.slice(7..9), page.slice(9..11), page.slice(..3)];
    let next = Some(Cursor::at(5));
    assert_eq!(pages.on_outcome(Outcome::Page { keys, next }), None);
    assert!(page.is_unique(), "nobody else has it");
    assert_eq!(pages.held(), 2 * (2 + size_of::<Bytes>()));
    let found = vec![Bytes::from_static(b"kk"); 2];
    let told = pages.on_outcome(Outcome::Page { keys: Vec::new(), next: None });
    assert_eq!(told, Some(CommandReply::Keys(found)));
}
