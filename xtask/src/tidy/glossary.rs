//! The glossary says what each word means once.
//!
//! It is the table under the heading `## Words` of the architecture, and no other table there has
//! words for rows. A word in two rows means two things, or one thing twice. Nor is a type called by
//! a bare word of asking that another one has: what is asked of whom is said by its name.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::{Tree, is_test};
use std::collections::BTreeMap;

const PATH: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Words";

/// Names that one type may have, in all crates together.
const ONCE: [&str; 7] = ["Ask", "Asked", "Answer", "Question", "Replies", "Reply", "Told"];

/// Finds words with two rows, rows without a meaning, and a glossary that is not there;
/// and types whose names say too little.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_table(tree);
    findings.extend(check_types(tree));
    findings
}

fn check_types(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for (path, text) in tree.below("crates", ".rs").filter(|(path, _)| !is_test(path)) {
        let source = Source::new(text);
        let tests = source.test_regions();
        for (at, _, name) in source.types() {
            let Some(once) = ONCE.into_iter().find(|once| *once == name) else { continue };
            if tests.iter().any(|region| region.contains(&at)) {
                continue;
            }
            let line = line_of(text, at);
            if let Some(first) = known.get(once) {
                let message = format!("{first} has a `{once}` too: say of what this one is");
                findings.push(Finding::new(path, line, message));
            } else {
                known.insert(once, format!("{path}:{line}"));
            }
        }
    }
    findings
}

fn check_table(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(PATH).unwrap_or_default();
    let mut findings = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    for (index, line) in section.filter(|(_, line)| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [word, meaning] = cells[..] else {
            findings.push(Finding::new(PATH, index + 1, "a row is `| word | what it is |`"));
            continue;
        };
        if word.is_empty() || meaning.is_empty() {
            findings.push(Finding::new(PATH, index + 1, "a word and its meaning; one is missing"));
        }
        if let Some(first) = known.insert(word.to_lowercase(), index + 1) {
            let message = format!("`{word}` has a row already, in line {first}: one row for each");
            findings.push(Finding::new(PATH, index + 1, message));
        }
    }
    for (index, _) in
        text.lines().enumerate().filter(|(_, line)| line.starts_with("| word |")).skip(1)
    {
        let message = format!("words are told in one table, under `{HEADING}`");
        findings.push(Finding::new(PATH, index + 1, message));
    }
    if known.is_empty() {
        let message = format!("a glossary is missing: a table under `{HEADING}`");
        findings.push(Finding::new(PATH, 1, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fires, passes};
    use super::*;

    #[test]
    fn words_are_told_in_one_table() {
        let words = "## Words\n\n| word | what it is |\n|---|---|\n| host | one |\n";
        let other = format!("{words}\n## Roll\n| who | what |\n|---|---|\n| host | one |\n");
        passes(check, &[(PATH, &other)]);
        let second = other.replace("| who |", "| word |");
        fires(check, &[(PATH, &second)], &format!("{PATH}:8"), "words are told in one table");
    }

    #[test]
    fn a_bare_word_of_asking_is_of_one_type() {
        let words = (PATH, "## Words\n\n| word | what it is |\n|---|---|\n| host | one |\n");
        let first = ("crates/a/src/lib.rs", "struct Asked;\nenum Reply {}\nstruct ReplyMode;\n");
        passes(check, &[words, first]);
        let path = "crates/b/src/lib.rs";
        for text in ["\npub(crate) struct Asked<T>(T);\n", "\ntype Reply = u8;\n"] {
            let says = if text.contains("Asked") { "lib.rs:1 has" } else { "lib.rs:2 has" };
            fires(check, &[words, first, (path, text)], &format!("{path}:2"), says);
            let tests = format!("#[cfg(test)]\nmod tests {{ {text} }}\n");
            passes(check, &[words, first, (path, &tests)]);
            passes(check, &[words, first, ("crates/b/tests/all.rs", text)]);
        }
        for other in ["struct AskedTwice;\n", "// struct Asked;\n", "fn f() -> Reply {}\n"] {
            passes(check, &[words, first, (path, other)]);
        }
    }
}
