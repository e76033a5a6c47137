//! Nothing unfinished is left in the tree, and `unsafe` stands only where it belongs.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;

/// Macros that mark unfinished or temporary code.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Words in comments that say the same.
const MARKS: [&str; 3] = ["FIXME", "TODO", "XXX"];

/// The only places where `unsafe` may stand, each with a safety comment.
const UNSAFE_PLACES: [&str; 3] =
    ["crates/host/src/io.rs", "crates/kernel/src/invariant.rs", "crates/sim/tests/allocations.rs"];

/// Finds unfinished code and misplaced `unsafe`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        let source = Source::new(text);
        for word in MACROS {
            let is_call = |at: &usize| source.code[at + word.len()..].starts_with('!');
            for at in source.places_of(word).filter(is_call) {
                let message = format!("{word}! must not reach the tree; finish it or take it out");
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
        for mark in MARKS {
            for (at, _) in source.comments.match_indices(mark) {
                let message = format!("a comment says {mark}; do it now, or say why it stays so");
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
        if UNSAFE_PLACES.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for at in source.places_of("unsafe") {
            let message = format!("unsafe may stand only in {}", UNSAFE_PLACES.join(" and "));
            findings.push(Finding::new(path, line_of(text, at), message));
        }
    }
    findings
}
