//! Every engine folder has the same inner shape, and no engine imports another.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;
use std::collections::BTreeSet;

const PROTOCOLS: &str = "crates/protocols/src";

/// How the file of an engine's value says that it is one.
const VALUE: &str = "pub const ENGINE: Engine ";

/// The list of the product's engines: the one line that names an engine.
pub const LIST: &str = "crates/protocols/src/engines.rs";

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

/// The engines: those that the list names, and those whose folders have an engine's value.
/// Everything else in [`PROTOCOLS`] is a building block.
pub fn names(tree: &Tree) -> BTreeSet<String> {
    let listed = Source::new(tree.text(LIST).unwrap_or_default());
    let values = listed.places_of("ENGINE").filter_map(|at| listed.code[..at].strip_suffix("::"));
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let named = values.filter_map(|path| path.rsplit(|each| !is_word(each)).next());
    let rules = tree.below(PROTOCOLS, "/rules.rs").filter(|(_, text)| text.contains(VALUE));
    let folders = rules.filter_map(|(path, _)| path[PROTOCOLS.len() + 1..].split('/').next());
    named.chain(folders).map(str::to_owned).collect()
}

/// Finds missing files of engines and imports between them.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let engines = names(tree);
    if engines.is_empty() && tree.below(PROTOCOLS, "").next().is_some() {
        findings.push(Finding::new(LIST, 1, "no engine is listed; right is: &NAME::ENGINE"));
    }
    for engine in &engines {
        let folder = format!("{PROTOCOLS}/{engine}");
        if tree.below(&folder, "").next().is_some() {
            check_files(tree, &folder, &mut findings);
            check_imports(tree, (engine, &engines), &folder, &mut findings);
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

fn check_imports(
    tree: &Tree,
    (engine, engines): (&str, &BTreeSet<String>),
    folder: &str,
    findings: &mut Vec<Finding>,
) {
    for (path, text) in tree.below(folder, ".rs") {
        let source = Source::new(text);
        for other in engines.iter().filter(|other| *other != engine) {
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

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::{fires, passes};
    use super::*;

    /// A list of two engines.
    pub const LISTED: &str = "const ENGINES: &[&Engine] = &[&causal::ENGINE, &epidemic::ENGINE];\n";

    fn shaped(tree: &Tree) -> Vec<Finding> {
        check(&tree.and(LIST, LISTED))
    }

    /// An engine folder with all it needs.
    const ENGINE: [(&str, &str); 10] = [
        ("crates/protocols/src/causal/mod.rs", "//! Chapter."),
        ("crates/protocols/src/causal/engine.rs", "use crate::quorum::Quorum;"),
        ("crates/protocols/src/causal/rules.rs", "//! Rules."),
        ("crates/protocols/src/causal/state.rs", "//! State."),
        ("crates/protocols/src/causal/message.rs", "//! Messages."),
        ("crates/protocols/src/causal/timer.rs", "//! Timers."),
        ("crates/protocols/src/causal/keys.rs", "//! Keys."),
        ("crates/protocols/src/causal/recover.rs", "//! Recovery."),
        ("crates/protocols/src/causal/tests.rs", "//! Tests."),
        ("crates/protocols/src/causal/scripts/calm.txt", "A calm day.\n"),
    ];

    #[test]
    fn engine_folders_are_complete() {
        passes(shaped, &ENGINE);
        passes(shaped, &[("crates/protocols/src/quorum/mod.rs", "//! A building block.")]);
        for (path, _) in &ENGINE[..9] {
            let mut files = ENGINE.to_vec();
            files.retain(|(each, _)| each != path);
            fires(shaped, &files, &format!("{path}:1"), "an engine folder needs");
            files.push((path, " \n"));
            fires(shaped, &files, &format!("{path}:1"), "an engine folder needs");
        }
        let place = "crates/protocols/src/causal/scripts:1";
        fires(shaped, &ENGINE[..9], place, "golden scripts");
        let mut files = ENGINE.to_vec();
        files[9].1 = "\n";
        fires(shaped, &files, "crates/protocols/src/causal/scripts/calm.txt:1", "empty");
    }

    #[test]
    fn engines_do_not_import_each_other() {
        for (text, line) in [
            ("\nuse crate::epidemic::Slice;", 2),
            ("use crate::{\n    quorum,\n    epidemic,\n};", 3),
            ("fn a() {\n    super::epidemic::slice();\n}", 2),
            ("use super::super::epidemic as other;", 1),
        ] {
            let mut files = ENGINE.to_vec();
            files[1].1 = text;
            let place = format!("crates/protocols/src/causal/engine.rs:{line}");
            fires(shaped, &files, &place, "causal imports epidemic");
        }
        for text in
            ["// use crate::epidemic;", "fn a(epidemic: u8) -> u8 { epidemic }", "use super::x;"]
        {
            let mut files = ENGINE.to_vec();
            files[1].1 = text;
            passes(shaped, &files);
        }
    }

    #[test]
    fn who_is_listed_or_has_a_value_is_an_engine() {
        let value = "pub const ENGINE: Engine = Engine { name: \"vast\" };\n";
        let files = [(LIST, LISTED), ("crates/protocols/src/vast/rules.rs", value)];
        let found = names(&Tree::of(&files));
        assert!(found.iter().eq(["causal", "epidemic", "vast"]), "{found:?}");
        let block = ("crates/protocols/src/quorum/rules.rs", "pub const RULES: u8 = 0;\n");
        fires(check, &[block], &format!("{LIST}:1"), "no engine is listed");
    }
}
