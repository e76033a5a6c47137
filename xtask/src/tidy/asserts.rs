//! Handlers of messages assert what must hold.
//!
//! A handler takes what a peer says and changes the state by it. It asserts at least twice what
//! must hold of the state before, between or after: never of the message, which a peer made up. A
//! file's handlers that assert less are an exception, and exceptions only shrink.

use super::lengths::{Kind, Measure, Place};
use super::source::{Function, Source};
use super::tree::Tree;

/// Where handlers are.
const PROTOCOLS: &str = "crates/protocols/src";

/// How often each handler asserts, at least.
const ASSERTIONS_MIN: usize = 2;

/// The handler whose one match sends each message to its own handler.
const DISPATCHER: &str = "on_message";

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
        && function.name != DISPATCHER
        && head.contains(": Incarnation");
    let found = code.matches("assert!(").count()
        + code.matches("assert_eq!(").count()
        + code.matches("assert_ne!(").count()
        + code.matches("invariant!(").count();
    (is_handler && found < ASSERTIONS_MIN).then(|| ASSERTIONS_MIN - found)
}
