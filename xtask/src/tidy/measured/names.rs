//! Where engines are called by their names.
//!
//! An engine is a folder and a line: what others need to know of it they ask its value. So its
//! name stands in its folder, on that line, and in its twins: a judge, a workload, scenarios and a
//! client's surface that are called after it, with the line that makes each of them known to the
//! compiler. Every other place is an exception, and there is none. Comments and tests may name whom
//! they like.

use super::lengths::{Kind, Measure, Place};
use crate::tidy::engines;
use crate::tidy::source::{Source, line_of};
use crate::tidy::tree::Tree;
use std::collections::BTreeSet;

/// The folders below which a file or folder that is called after an engine is its own.
const TWINS: [&str; 4] =
    ["crates/protocols/src", "crates/check/src", "crates/sim/src/workload", "crates/client/src"];

/// Where a client in another language would ask for an engine by its name, as a string.
const PYTHON: &str = "clients/python/src";

/// Words of papers that have an engine's name in them and mean no engine: what was seen of a key
/// ("causal context": dotted version vectors, DottedDB).
const WORDS: [&str; 2] = ["CausalContext", "causal context"];

/// The list of the scenarios that ship, and where they are.
const SCENARIOS: (&str, &str) = ("crates/sim/src/scenarios/shipped.rs", "crates/sim/scenarios");

/// How often each file names engines where it should not; the line is that of the first.
pub fn measure(tree: &Tree) -> Vec<(Place, Measure)> {
    let mut over = Vec::new();
    let engines = engines::names(tree);
    for (path, text) in tree.below("crates", ".rs").filter(|(path, _)| is_product(path)) {
        let source = Source::new(text);
        let tests = source.test_regions();
        let lower = text.to_ascii_lowercase();
        let mut places: Vec<usize> = engines
            .iter()
            .filter(|name| !is_of(path, name))
            .flat_map(|name| {
                lower.match_indices(name.as_str()).map(move |(at, _)| (at, at + name.len()))
            })
            .filter(|(_, end)| !text[*end..].starts_with(|next: char| next.is_ascii_lowercase()))
            .map(|(at, _)| at)
            .filter(|at| source.comments[*at..].starts_with(char::is_whitespace))
            .filter(|at| !WORDS.iter().any(|word| text[*at..].starts_with(word)))
            .filter(|at| !makes_known(tree, path, text, *at))
            .filter(|at| !tests.iter().any(|region| region.contains(at)))
            .collect();
        places.sort_unstable();
        if let Some(first) = places.first() {
            let measure = Measure { length: places.len(), line: line_of(text, *first) };
            over.push(((Kind::Names, path.to_owned()), measure));
        }
    }
    over.extend(tree.below(PYTHON, ".py").filter_map(|(path, text)| {
        let measure = strings(text, &engines)?;
        Some(((Kind::Names, path.to_owned()), measure))
    }));
    over
}

/// How often engines' names are strings in a file of Python.
fn strings(text: &str, engines: &BTreeSet<String>) -> Option<Measure> {
    let is_named = |line: &str| {
        let code = line.split('#').next().expect("a split has a first part");
        engines.iter().any(|name| code.contains(&format!("\"{name}\"")))
    };
    let lines = || (1..).zip(text.lines()).filter(|(_, line)| is_named(line));
    lines().next().map(|(line, _)| Measure { length: lines().count(), line })
}

/// Whether what is named at a place of a file is made known there to the compiler: as a module of
/// a twin, in the list of engines, or in the list of scenarios by the name of one.
fn makes_known(tree: &Tree, path: &str, text: &str, at: usize) -> bool {
    let (list, scenarios) = SCENARIOS;
    if path == list {
        let named = text[at..].split('"').next().expect("a split has a first part");
        let file = format!("{scenarios}/{named}.toml");
        return text[..at].ends_with('"') && tree.text(&file).is_some();
    }
    let begin = text[..at].rfind('\n').map_or(0, |before| before + 1);
    let line = text[begin..].lines().next().expect("the name is on it");
    let behind = text[at..].trim_start_matches(char::is_alphanumeric);
    if path == engines::LIST && (line.starts_with("use ") || behind.starts_with("::ENGINE")) {
        return true;
    }
    let is_module = ["mod ", "pub mod ", "pub(crate) mod ", "pub use "];
    let is_above =
        |twin: &str| path == format!("{twin}/lib.rs") || path == format!("{twin}/mod.rs");
    TWINS.into_iter().any(is_above) && is_module.iter().any(|word| line.starts_with(word))
}

/// Whether a file is part of what is built for users, and not of the tests, nor of the lab and its
/// baseline, which know engines by name.
fn is_product(path: &str) -> bool {
    path.contains("/src/")
        && !path.starts_with("crates/lab/")
        && !path.starts_with("crates/merkle/")
        && !path.ends_with("/tests.rs")
        && !path.contains("/testing/")
        && !path.contains("/tests/")
}

/// Whether a file may name an engine.
fn is_of(path: &str, name: &str) -> bool {
    let is_called_so = |part: &str| part.strip_suffix(".rs").unwrap_or(part) == name;
    let is_twin = |folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.split('/').any(is_called_so))
    };
    TWINS.into_iter().any(is_twin)
}
