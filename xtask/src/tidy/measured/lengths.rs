//! How long files, functions and lines are, and how full folders, where they are too much.

use crate::tidy::source::Source;
use crate::tidy::tree::Tree;
use std::collections::BTreeMap;
use std::fmt;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Lines of a file.
    File,
    /// Lines of a function, from `fn` to its closing brace.
    Function,
    /// Columns of a file's widest line.
    Columns,
    /// Files of Rust that lie directly in a folder.
    Folder,
    /// How often a file names an engine that is not its own.
    Names,
    /// How many assertions a file's handlers of messages lack.
    Asserts,
    /// How many signs a file shows of a simulated world that is not the one.
    Worlds,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [
        Kind::File,
        Kind::Function,
        Kind::Columns,
        Kind::Folder,
        Kind::Names,
        Kind::Asserts,
        Kind::Worlds,
    ];

    /// The most that needs no exception.
    pub fn limit(self) -> usize {
        match self {
            Kind::File => 400,
            Kind::Function => 70,
            Kind::Columns => 100,
            Kind::Folder => 15,
            Kind::Names | Kind::Asserts | Kind::Worlds => 0,
        }
    }

    /// The most an exception may ask for; where no exception is left, none comes in again.
    pub fn limit_hard(self) -> usize {
        match self {
            Kind::File => 800,
            Kind::Function => 140,
            Kind::Columns => 140,
            Kind::Folder => 15,
            Kind::Names | Kind::Asserts => 0,
            Kind::Worlds => 3,
        }
    }

    /// What a place over the limit should do.
    pub fn advice(self) -> &'static str {
        match self {
            Kind::File => "split it: one idea per file",
            Kind::Function => "push ifs up and fors down, and give the parts names",
            Kind::Columns => "break the line",
            Kind::Folder => "give it rooms by idea, each with a page in its mod.rs",
            Kind::Names => "ask the engine's value instead, or move this into its folder",
            Kind::Asserts => "assert what must hold of the state, twice in each `on_...`",
            Kind::Worlds => "there is only one, crates/sim/src/world: give it what it lacks",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::File => "file",
            Kind::Function => "function",
            Kind::Columns => "columns",
            Kind::Folder => "folder",
            Kind::Names => "names",
            Kind::Asserts => "asserts",
            Kind::Worlds => "worlds",
        })
    }
}

/// What is measured where: the path of a file or a folder, and for a function `path::name`.
pub type Place = (Kind, String);

/// A measure, and the line to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    /// How long it is.
    pub length: usize,
    /// Where it begins.
    pub line: usize,
}

/// Every measure that is over its limit. A file has one place for all its lines, and functions of
/// one name in one file share theirs: an exception bounds the longest.
pub fn measure(tree: &Tree) -> Vec<(Place, Measure)> {
    let mut over = folders(tree);
    for (path, text) in tree.files().filter(|(path, _)| is_source(path)) {
        let mut note = |kind: Kind, place: String, length: usize, line: usize| {
            if length > kind.limit() {
                over.push(((kind, place), Measure { length, line }));
            }
        };
        note(Kind::File, path.to_owned(), text.lines().count(), 1);
        for (index, line) in text.lines().enumerate() {
            note(Kind::Columns, path.to_owned(), columns(line), index + 1);
        }
        if path.ends_with(".rs") {
            for function in Source::new(text).functions() {
                let place = format!("{path}::{}", function.name);
                note(Kind::Function, place, function.line_count, function.line);
            }
        }
    }
    over
}

/// The folders with too many files.
fn folders(tree: &Tree) -> Vec<(Place, Measure)> {
    let mut counts = BTreeMap::new();
    for (path, _) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder).or_insert(0) += 1;
    }
    counts.retain(|_, count| *count > Kind::Folder.limit());
    let place = |folder: &str| (Kind::Folder, folder.to_owned());
    counts.into_iter().map(|(path, length)| (place(path), Measure { length, line: 1 })).collect()
}

/// The longest of the measures at `place`, or none if all keep the limit.
pub fn longest(over: &[(Place, Measure)], place: &Place) -> Option<usize> {
    over.iter().filter(|(each, _)| each == place).map(|(_, measure)| measure.length).max()
}

fn is_source(path: &str) -> bool {
    [".rs", ".py", ".go", ".java", ".sh"].iter().any(|ending| path.ends_with(ending))
}

/// The columns of a line; a tab counts as four. A row of a table in a doc comment counts as none,
/// because a table's rows cannot be broken.
fn columns(line: &str) -> usize {
    let comment = ["//! |", "/// |"].iter().any(|start| line.trim_start().starts_with(start));
    if comment && line.ends_with('|') {
        return 0;
    }
    line.chars().map(|character| if character == '\t' { 4 } else { 1 }).sum()
}
