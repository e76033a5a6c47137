//! Every engine folder has the same inner shape, and no engine imports another.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;

const PROTOCOLS: &str = "crates/protocols/src";

/// The folders of [`PROTOCOLS`] that are engines; everything else there is a building block.
pub const ENGINES: [&str; 5] =
    ["linearizable", "causal", "serializable", "coordination", "epidemic"];

/// What every engine folder holds, and what each file is for.
const FILES: [(&str, &str); 9] = [
    ("mod.rs", "the chapter: promise, roles, message diagram, invariants"),
    ("rules.rs", "the engine as a value: settings, what it can do, how it is opened"),
    ("engine.rs", "the process, with the only match on inputs"),
    ("state.rs", "durable and volatile state apart, and check()"),
    ("message.rs", "the messages, each with who sends it and when"),
    ("timer.rs", "the timers"),
    ("keys.rs", "what the engine stores, and when it may be dropped"),
    ("recover.rs", "how state comes back from the store"),
    ("tests.rs", "unit tests and the runner of the golden scripts"),
];

/// Finds missing files of engines and imports between them.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for engine in ENGINES {
        let folder = format!("{PROTOCOLS}/{engine}");
        if tree.below(&folder, "").next().is_some() {
            check_files(tree, &folder, &mut findings);
            check_imports(tree, engine, &folder, &mut findings);
        }
    }
    findings
}

fn check_files(tree: &Tree, folder: &str, findings: &mut Vec<Finding>) {
    for (name, purpose) in FILES {
        let path = format!("{folder}/{name}");
        if tree.text(&path).is_none_or(|text| text.trim().is_empty()) {
            let message = format!("an engine folder needs {name} ({purpose})");
            findings.push(Finding::new(&path, 1, message));
        }
    }
    let scripts = format!("{folder}/scripts");
    if tree.below(&scripts, ".txt").next().is_none() {
        let message = "an engine folder needs golden scripts, scripts/*.txt, \
                       that show every message";
        findings.push(Finding::new(&scripts, 1, message));
    }
    for (path, text) in tree.below(&scripts, ".txt") {
        if text.trim().is_empty() {
            findings.push(Finding::new(path, 1, "this golden script is empty; record it"));
        }
    }
}

fn check_imports(tree: &Tree, engine: &str, folder: &str, findings: &mut Vec<Finding>) {
    for (path, text) in tree.below(folder, ".rs") {
        let source = Source::new(text);
        for other in ENGINES.iter().filter(|other| **other != engine) {
            for at in source.places_of(other).filter(|at| is_path(&source.code, *at, other)) {
                let message = format!(
                    "{engine} imports {other}, but an engine imports only the kernel and building \
                     blocks; move what both need into a building block beside them"
                );
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
}

/// Whether the word at `at` is part of a path or of a `use` item, not a name of its own.
fn is_path(code: &str, at: usize, word: &str) -> bool {
    let (before, after) = (&code[..at], &code[at + word.len()..]);
    let item = before.rsplit([';', '}']).next().unwrap_or_default().trim_start();
    let is_used = ["use ", "pub use "].iter().any(|start| item.starts_with(start));
    before.trim_end().ends_with("::") || after.trim_start().starts_with("::") || is_used
}
