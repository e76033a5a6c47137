//! The rules of this code base that a program can check.
//!
//! | file | rule |
//! |---|---|
//! | [`arrows`] | a crate depends only on crates below it |
//! | [`pure`] | protocol code is `no_std`, and so is all it uses |
//! | [`engines`] | every engine folder has the same shape and imports no other engine |
//! | [`example`] | the example engine has fewer than 200 lines of code |
//! | [`measured::lengths`] | functions, files and lines stay short, folders small |
//! | [`measured::names`] | an engine is named in its folder, on one line, and in its twins |
//! | [`measured::asserts`] | handlers of messages assert what must hold |
//! | [`measured::worlds`] | there is one simulated world |
//! | [`measured::ratchet`] | exceptions to lengths, names, assertions and the one world only shrink |
//! | [`glossary`] | a word has one meaning |
//! | [`echoes`] | a doc comment says what the name does not |
//! | [`words`] | nothing unfinished, and `unsafe` only where it belongs |
//! | [`marks`] | every mark of a rare path is required of the sweep, or argued |
//! | [`planted`] | every planted bug is listed, every listed one is planted, and its test is there |
//!
//! Each rule is a function from a [`Tree`] to findings, so its tests need no files.

mod arrows;
mod echoes;
mod engines;
mod example;
mod glossary;
mod marks;
mod measured;
mod planted;
mod pure;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use crate::run;
use measured::{asserts, lengths, names, ratchet, worlds};
use std::fmt;
use tree::Tree;

const RATCHET: &str = "xtask/ratchet.txt";

/// One place that breaks a rule, and what would be right.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// `cargo xtask tidy [--no-build] [--tighten]`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    let (mut may_build, mut may_tighten) = (true, false);
    for argument in arguments {
        match argument.as_str() {
            "--no-build" => may_build = false,
            "--tighten" => may_tighten = true,
            other => return Err(format!("tidy knows --no-build and --tighten, got {other}")),
        }
    }
    let root = run::root();
    if may_tighten {
        let tree = Tree::read(&root).map_err(|error| error.to_string())?;
        let text = ratchet::tighten(tree.text(RATCHET).unwrap_or(""), &measure(&tree));
        std::fs::write(root.join(RATCHET), text).map_err(|error| error.to_string())?;
    }
    let tree = Tree::read(&root).map_err(|error| error.to_string())?;
    let findings = check(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        return Err(format!("tidy: {} places break a rule", findings.len()));
    }
    if may_build {
        for name in pure::CRATES {
            let package = format!("quorate-{name}");
            let arguments = ["check", "--quiet", "--package", &package];
            run::step("pure crate alone", &mut run::cargo(&arguments))?;
        }
    }
    println!("== tidy: {} files keep every rule", tree.files().count());
    Ok(())
}

/// Everything that is over a limit.
fn measure(tree: &Tree) -> Vec<(lengths::Place, lengths::Measure)> {
    let mut over = lengths::measure(tree);
    over.extend(names::measure(tree));
    over.extend(asserts::measure(tree));
    over.extend(worlds::measure(tree));
    over
}

/// Every finding of every rule, in the order of paths and lines.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = arrows::check(tree);
    findings.extend(pure::check(tree));
    findings.extend(engines::check(tree));
    findings.extend(example::check(tree));
    findings.extend(glossary::check(tree));
    findings.extend(echoes::check(tree));
    findings.extend(words::check(tree));
    findings.extend(marks::check(tree));
    findings.extend(planted::check(tree));
    findings.extend(ratchet::check(RATCHET, tree, &measure(tree)));
    findings.sort();
    findings
}
