//! A doc comment says what the name does not.
//!
//! `/// The key.` above `key` tells a reader nothing: who sets it, its unit, or when it is none
//! would. A finding is a doc of one line all of whose words are in the name below it; articles and
//! pronouns do not count, nor does an `s` at the end.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeSet;

/// Where docs say more than their names; a folder that is gone through joins them.
const FOLDERS: [&str; 14] = [
    "crates/cli/src",
    "crates/client/src",
    "crates/doors/src",
    "crates/gateway/src",
    "crates/host/src",
    "crates/kernel/src",
    "crates/node/src",
    "crates/protocols/src/catalog",
    "crates/protocols/src/detector",
    "crates/protocols/src/dots",
    "crates/protocols/src/gossip",
    "crates/protocols/src/reconfigure",
    "crates/protocols/src/ring",
    "crates/store/src",
];

/// Places in those folders where names are still repeated; they only become fewer.
const OPEN: [&str; 2] = ["crates/host/src/metrics/", "crates/kernel/src/operations/operation.rs"];

/// Words that say nothing beside a name.
const EMPTY: [&str; 14] =
    ["a", "an", "and", "for", "in", "is", "it", "its", "of", "one", "that", "the", "this", "to"];

/// What may stand before the name of an item.
const BEFORE: [&str; 10] =
    ["async", "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "unsafe"];

/// Every doc in those folders that is only its name again.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in FOLDERS {
        for (path, text) in tree.below(folder, ".rs").filter(|(path, _)| !path.contains("/tests")) {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for line in (0..lines.len()).filter(|line| is_echo(&lines, *line)) {
                let message = format!(
                    "`{}` is the name below it again; say what the name does not: who sets it, \
                     its unit or range, when it is none",
                    lines[line]
                );
                findings.push(Finding::new(path, line + 1, message));
            }
        }
    }
    for open in OPEN {
        let count = findings.len();
        findings.retain(|finding| !finding.path.starts_with(open));
        let is_there = tree.files().any(|(path, _)| path.starts_with(open));
        if is_there && findings.len() == count {
            let message = format!("{open} repeats no name any more; take it out of `OPEN`");
            findings.push(Finding::new("xtask/src/tidy/echoes.rs", 1, message));
        }
    }
    findings
}

/// Whether the doc that is this line, and no other, repeats the name of what follows it.
fn is_echo(lines: &[&str], line: usize) -> bool {
    let is_doc = |line: &&&str| line.starts_with("///");
    let Some(doc) = lines[line].strip_prefix("/// ") else { return false };
    let is_alone = line.checked_sub(1).and_then(|line| lines.get(line)).filter(is_doc).is_none()
        && lines.get(line + 1).filter(is_doc).is_none();
    let mut below = lines[line + 1..].iter().skip_while(|below| below.starts_with("#["));
    let Some(name) = below.next().and_then(|below| name_of(below)) else { return false };
    let name = words(&name);
    let said = words(doc);
    is_alone && !said.is_empty() && said.is_subset(&name)
}

/// The name that a line gives to an item, a field or a variant.
fn name_of(line: &str) -> Option<String> {
    let mut rest = line;
    if let Some(behind) = rest.strip_prefix("pub") {
        rest = match behind.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => behind,
        };
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    loop {
        rest = rest.trim_start();
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let word = &rest[..end];
        if !BEFORE.contains(&word) {
            return (!word.is_empty()).then(|| word.to_owned());
        }
        rest = &rest[end..];
    }
}

/// The words of a text or a name that say something, in small letters; `HashRange` and
/// `hash_ranges` are the same two.
fn words(text: &str) -> BTreeSet<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for character in text.chars() {
        if character.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            spaced.push(' ');
        }
        spaced.push(character);
        before = character;
    }
    let lower = spaced.to_lowercase();
    let parts = lower.split(|character: char| !character.is_alphanumeric());
    let one = |word: &str| match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 => stem.to_owned(),
        _ => word.to_owned(),
    };
    parts.filter(|word| !word.is_empty() && !EMPTY.contains(word)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fires, passes};
    use super::*;

    #[test]
    fn a_doc_is_not_its_name_again() {
        let path = "crates/kernel/src/a.rs";
        for text in [
            "/// The key.\nkey: Bytes,\n",
            "    /// Its names.\n    #[serde(default)]\n    pub(crate) name: String,\n",
            "/// A hash range.\npub struct HashRange {}\n",
            "/// The ring of this.\npub async fn ring() {}\n",
            "/// Members\nMembers(u8),\n",
        ] {
            fires(check, &[(path, text)], &format!("{path}:1"), "is the name below it again");
        }
        for text in [
            "/// The key that is read.\nkey: Bytes,\n",
            "/// The key.\n/// It is as it was written.\nkey: Bytes,\n",
            "/// It is.\nkey: Bytes,\n",
            "// The key.\nkey: Bytes,\n",
            "/// The key.\n",
            "/// The key.\npub struct Lock {}\n",
        ] {
            passes(check, &[(path, text)]);
        }
        let open = OPEN[1];
        passes(check, &[(open, "/// The key.\nkey: Bytes,\n")]);
        let this = "xtask/src/tidy/echoes.rs:1";
        fires(check, &[(open, "/// What is read.\nkey: Bytes,\n")], this, "take it out of `OPEN`");
        passes(check, &[("crates/sim/src/a.rs", "/// The key.\nkey: Bytes,\n")]);
    }
}
