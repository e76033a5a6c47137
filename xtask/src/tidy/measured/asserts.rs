//! Handlers of messages assert what must hold.
//!
//! A handler takes what a peer says and changes the state by it. It asserts at least twice what
//! must hold of the state before, between or after: never of the message, which a peer made up.
//! There are no exceptions.

use super::lengths::{Kind, Measure, Place};
use crate::tidy::source::{Function, Source};
use crate::tidy::tree::Tree;

/// Where handlers are.
const PROTOCOLS: &str = "crates/protocols/src";

/// How often each handler asserts, at least.
const ASSERTIONS_MIN: usize = 2;

/// What hears of others, and is no handler: the one match that sends each message to its own
/// handler, and the end of a connection, which this node sees itself.
const OTHERS: [&str; 2] = ["on_message", "on_unlinked"];

/// What a handler is given, one of them at least: who says it, or by which right.
const GIVEN: [&str; 5] = [": Incarnation", ": NodeId", ": GroupId", "(GroupId", ": Ballot"];

/// How many assertions the handlers of each file lack; the line is that of the first of them.
pub fn measure(tree: &Tree) -> Vec<(Place, Measure)> {
    let mut over = Vec::new();
    for (path, text) in tree.below(PROTOCOLS, ".rs").filter(|(path, _)| !path.contains("/tests")) {
        let source = Source::new(text);
        let lines: Vec<&str> = source.code.lines().collect();
        let lacking: Vec<(usize, usize)> = source
            .functions()
            .into_iter()
            .filter_map(|function| Some((function.line, lacks(&function, &lines)?)))
            .collect();
        if let Some((line, _)) = lacking.first() {
            let length = lacking.iter().map(|(_, count)| count).sum();
            over.push(((Kind::Asserts, path.to_owned()), Measure { length, line: *line }));
        }
    }
    over
}

/// How many assertions a handler lacks; none if it has enough, or is no handler.
fn lacks(function: &Function, lines: &[&str]) -> Option<usize> {
    let from = function.line - 1;
    let code = lines[from..from + function.line_count].join("\n");
    let head = code.split('{').next().unwrap_or_default();
    let is_handler = function.name.starts_with("on_")
        && !OTHERS.contains(&&*function.name)
        && GIVEN.iter().any(|given| head.contains(given));
    let found = code.matches("assert!(").count()
        + code.matches("assert_eq!(").count()
        + code.matches("assert_ne!(").count()
        + code.matches("invariant!(").count();
    (is_handler && found < ASSERTIONS_MIN).then(|| ASSERTIONS_MIN - found)
}

#[cfg(test)]
mod tests {
    use super::super::ratchet;
    use super::*;
    use crate::tidy::Finding;
    use crate::tidy::tests::{fires, passes};

    fn asserting(tree: &Tree) -> Vec<Finding> {
        ratchet::check("list.txt", tree, &measure(tree))
    }

    #[test]
    fn a_handler_asserts_twice() {
        let path = "crates/protocols/src/causal/coordinate/get.rs";
        let handler = |name: &str, body: &str| {
            format!("\nfn {name}(&mut self, from: Incarnation, op: u64) {{\n{body}}}\n")
        };
        for (body, lacks) in [("", 2), ("// assert!(true);\n", 2), ("    assert_eq!(1, 1);\n", 1)] {
            let text = handler("on_read", body);
            fires(
                asserting,
                &[(path, &text)],
                &format!("{path}:2"),
                &format!("lack {lacks} assert"),
            );
        }
        let enough = "    invariant!(a, \"b\");\n    debug_assert!(c);\n";
        passes(asserting, &[(path, &handler("on_read", enough))]);
        passes(asserting, &[(path, &handler("on_message", ""))]);
        passes(asserting, &[(path, &handler("read", ""))]);
        for given in ["host: NodeId", "(group, tx): (GroupId, TxId)", "asked: u64, ballot: Ballot"]
        {
            let text = format!("\nfn on_read(&mut self, {given}) {{\n}}\n");
            fires(asserting, &[(path, &text)], &format!("{path}:2"), "lack 2 assert");
        }
        passes(asserting, &[(path, "\nfn on_unlinked(&mut self, peer: NodeId) {\n}\n")]);
        passes(asserting, &[(path, "\nfn on_timer(&mut self, timer: Timer) {\n}\n")]);
        passes(asserting, &[("crates/protocols/src/causal/tests/get.rs", &handler("on_read", ""))]);
    }
}
