//! `check`: the verdict decides the exit code.

use crate::support::run::{command, feed, quorate};

const HEADER: &str = r#"{"format":"quorate-history","version":1}"#;
const PUT: &str = concat!(
    r#"{"event":"invoke","id":1,"client":1,"at_ns":1,"operation":"put","#,
    r#""key":"k","value":"v"}"#,
    "\n",
    r#"{"event":"complete","id":1,"at_ns":2,"outcome":"written"}"#
);
const GET: &str = r#"{"event":"invoke","id":2,"client":2,"at_ns":3,"operation":"get","key":"k"}"#;

fn check(lines: &[&str]) -> crate::support::run::Said {
    feed(&mut command(&["check", "-"]), lines.join("\n").as_bytes())
}

#[test]
fn a_kept_promise_passes_and_a_broken_one_fails() {
    let fresh = r#"{"event":"complete","id":2,"at_ns":4,"outcome":"value","value":"v"}"#;
    let said = check(&[HEADER, PUT, GET, fresh]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("linearizability: holds"), "{said:?}");
    let stale = r#"{"event":"complete","id":2,"at_ns":4,"outcome":"value","value":null}"#;
    let said = check(&[HEADER, PUT, GET, stale]);
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.out.contains("linearizability: violated"), "{said:?}");
}

#[test]
fn a_file_that_is_no_history_is_named_with_its_line() {
    let said = check(&[HEADER, "nonsense"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("line 2"), "{said:?}");
    let said = quorate(&["check", "/nowhere/history.jsonl"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("/nowhere/history.jsonl"), "{said:?}");
}
