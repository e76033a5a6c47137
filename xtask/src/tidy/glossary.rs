//! The glossary says what each word means once.
//!
//! It is the table under the heading `## Words` of the architecture. A word in two rows means two
//! things, or one thing twice.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeMap;

const PATH: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Words";

/// Finds words with two rows, rows without a meaning, and a glossary that is not there.
pub fn check(tree: &Tree) -> Vec<Finding> {
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
    if known.is_empty() {
        let message = format!("a glossary is missing: a table under `{HEADING}`");
        findings.push(Finding::new(PATH, 1, message));
    }
    findings
}
