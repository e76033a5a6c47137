//! Histories that hold, and for each law one that breaks it.

use super::*;
use alloc::string::ToString;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn list(values: &[&str]) -> Vec<Bytes> {
    values.iter().map(|value| bytes(value)).collect()
}

/// A history of one key.
#[derive(Default)]
struct Story(History);

impl Story {
    fn put(&mut self, value: &str, basis: Basis, ending: Ending) -> WriteNumber {
        let write = self.0.write(&bytes("k"), Some(bytes(value)), basis);
        self.0.end(write, ending);
        write
    }

    fn delete(&mut self, basis: Basis, ending: Ending) {
        let write = self.0.write(&bytes("k"), None, basis);
        self.0.end(write, ending);
    }

    fn get(&mut self, values: &[&str]) -> Basis {
        Basis::Read(self.0.read(&bytes("k"), list(values)))
    }

    fn rest(&mut self, values: &[&str]) -> &mut Story {
        self.0.read_at_quiescence(&bytes("k"), list(values));
        self
    }

    fn verdict(&self) -> String {
        judge(&self.0).err().unwrap_or_else(|| "holds".to_string())
    }
}

use Ending::{Refused, Stored, Unknown};

#[test]
fn siblings_and_replacements_hold() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    story.put("b", Basis::Blind, Stored);
    let basis = story.get(&["a", "b"]);
    let write = story.put("c", basis, Stored);
    story.get(&["a"]);
    story.put("d", Basis::Write(write), Unknown);
    assert_eq!(story.rest(&["c"]).rest(&["c"]).verdict(), "holds");
    let mut other = Story::default();
    other.put("a", Basis::Blind, Refused);
    assert_eq!(other.rest(&[]).verdict(), "holds");
}

#[test]
fn a_write_that_is_sent_again_is_one_write() {
    let sent_twice = |second: Ending| {
        let mut story = Story::default();
        let write = story.put("a", Basis::Blind, Unknown);
        story.0.repeat(write);
        story.0.end(write, second);
        story
    };
    let mut story = sent_twice(Refused);
    assert_eq!(story.rest(&["a"]).verdict(), "holds", "the first may have done it");
    let mut story = sent_twice(Stored);
    assert!(story.rest(&[]).verdict().contains("is lost"));
    let mut story = sent_twice(Stored);
    story.get(&["a", "a"]);
    assert!(story.verdict().contains("twice"));
    let mut story = sent_twice(Stored);
    let basis = story.get(&["a"]);
    story.delete(basis, Stored);
    assert!(story.rest(&["a"]).verdict().contains("had replaced it"));
}

#[test]
fn a_lost_value_is_noticed() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    story.put("b", Basis::Blind, Stored);
    assert!(story.rest(&["b"]).verdict().contains("is lost"));
}

#[test]
fn a_write_that_left_no_trace_explains_nothing() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    story.put("b", basis, Unknown);
    assert_eq!(story.rest(&["b"]).verdict(), "holds");
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    story.put("b", basis, Unknown);
    assert!(story.rest(&[]).verdict().contains("is lost"));
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    story.delete(basis, Unknown);
    assert_eq!(story.rest(&[]).verdict(), "holds");
}

#[test]
fn a_value_that_comes_back_is_noticed() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    story.delete(basis, Stored);
    assert!(story.rest(&["a"]).verdict().contains("had replaced it"));
    // Through what its writer had seen, too.
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    let write = story.put("b", basis, Unknown);
    story.delete(Basis::Write(write), Stored);
    assert!(story.rest(&["a"]).verdict().contains("had replaced it"));
}

#[test]
fn invented_doubled_and_older_values_are_noticed() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    story.get(&["a", "x"]);
    assert!(story.verdict().contains("nobody wrote"));
    let mut story = Story::default();
    story.put("a", Basis::Blind, Refused);
    story.get(&["a"]);
    assert!(story.verdict().contains("nobody wrote"));
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    story.get(&["a", "a"]);
    assert!(story.verdict().contains("twice"));
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    let basis = story.get(&["a"]);
    story.put("b", basis, Unknown);
    story.get(&["a", "b"]);
    assert!(story.verdict().contains("stands beside"));
}

#[test]
fn replicas_that_differ_or_keep_too_much_are_noticed() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Unknown);
    assert!(story.rest(&["a"]).rest(&[]).verdict().contains("replicas differ"));
    for remains in [
        Remains { moving: 1, ..Remains::default() },
        Remains { dots: 1, ..Remains::default() },
        Remains { contexts: 1, ..Remains::default() },
        Remains { empty: 1, ..Remains::default() },
    ] {
        let mut history = History::default();
        history.remains(Remains::default());
        assert_eq!(judge(&history), Ok(()));
        history.remains(remains);
        assert!(judge(&history).is_err_and(|what| what.contains("host 2")));
    }
}

#[test]
fn a_workload_that_repeats_a_value_cannot_be_judged() {
    let mut story = Story::default();
    story.put("a", Basis::Blind, Stored);
    story.put("a", Basis::Blind, Stored);
    assert!(story.verdict().contains("twice"));
    let mut history = History::default();
    [bytes("k"), bytes("l")].iter().for_each(|key| {
        history.write(key, Some(bytes("a")), Basis::Blind);
    });
    assert_eq!(judge(&history), Ok(()), "two keys may share a value");
}
