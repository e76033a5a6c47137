//! Deterministic worlds: golden scripts, in which a script decides every step, and [`hosts`], which
//! go on by themselves.
//!
//! A script is a text file. Its first line is a sentence that says what it shows; after it come
//! commands, each followed by what it caused, in lines that begin with `>`. A test runs the
//! commands and compares; with `UPDATE_SCRIPTS=1` in the environment it rewrites the files instead,
//! and the change is reviewed like code. Lines that begin with `#` are remarks.
//!
//! | file | what it holds |
//! |---|---|
//! | [`disk`] | a node's bytes, and what of them a crash takes away |
//! | [`hosts`] | hosts that run the lane of a replicated engine as a node does |
//! | [`partitions`] | machines over partitions, on hosts that go on by themselves |
//! | [`timeline`] | what will happen in a world that does not wait for a script |
//! | [`shown`] | what happened, in words |
//! | [`world`] | nodes, messages in flight, one clock |
//! | [`setup`] | what it begins with |
//! | [`views`] | the views of its groups |
//! | [`script`] | the commands |
//! | [`raw`] | messages as bytes |
//! | [`siblings`] | those for engines that keep siblings |
//!
//! An engine takes part by implementing [`Scripted`].

pub mod disk;
mod flight;
pub mod hosts;
pub mod partitions;
pub mod raw;
pub mod script;
pub mod setup;
pub mod shown;
pub mod siblings;
pub mod timeline;
pub mod views;
pub mod world;

use bytes::Bytes;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::process::Process;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Change, View, ViewId};
use std::borrow::ToOwned;
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs};

/// What the runner must know of an engine.
pub trait Scripted: Process {
    /// The engine before its start; `options` are the words of the `nodes` command that the world
    /// itself does not know.
    fn born(first_view: &View, options: &[&str]) -> Self;

    /// What tells a member that this change was decided to follow a view.
    fn decided(follows: ViewId, change: Change) -> Self::Message;

    /// The catalog's first record of a keyspace on fixed partitions.
    fn record(_first_view: &View, _options: &[&str]) -> Keyspace {
        panic!("this engine has no partitions")
    }

    /// The name of the message's variant.
    fn name(message: &Self::Message) -> &'static str;

    /// The message's fields in readable form.
    fn show(message: &Self::Message) -> String;

    /// A write in readable form.
    fn show_write(class: Class, key: &Bytes, value: Option<&Bytes>) -> String;
}

/// Runs every script of a folder.
///
/// # Panics
/// A script does not show what it says, or cannot be read.
pub fn run_scripts<P: Scripted>(folder: &str) {
    compare_scripts(folder, 1, script::run::<P>);
}

/// Runs every script of a folder, of which there are so many at least, as `run` does.
///
/// # Panics
/// A script does not show what it says, or cannot be read.
pub fn compare_scripts(folder: &str, least: usize, run: impl Fn(&str) -> Result<String, String>) {
    let entries = fs::read_dir(folder).expect("the folder of scripts is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(paths.len() >= least, "{folder} has its scripts");
    let may_update = env::var_os("UPDATE_SCRIPTS").is_some();
    let mut failures = Vec::new();
    for path in paths {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let expected = fs::read_to_string(&path).expect("a readable script");
        match run(&expected) {
            Ok(actual) if actual == expected => {}
            Ok(actual) if may_update => fs::write(&path, actual).expect("a writable script"),
            Ok(actual) => {
                failures.push(format!("{name}: {}", first_difference(&expected, &actual)));
            }
            Err(why) => failures.push(format!("{name}: {why}")),
        }
    }
    assert!(failures.is_empty(), "UPDATE_SCRIPTS=1 rewrites them:\n{}", failures.join("\n"));
}

fn first_difference(expected: &str, actual: &str) -> String {
    let mut lines = (1..).zip(expected.lines().zip(actual.lines()));
    match lines.find(|(_, (old, new))| old != new) {
        Some((line, (old, new))) => format!("line {line}\n  expected {old}\n  actual   {new}"),
        None => "one is longer than the other".to_owned(),
    }
}

/// Bytes as a word: text if they are printable, shortened if they are many.
pub fn word(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 24;
    if bytes.len() > SHOWN_MAX {
        return format!("{}..({} bytes)", word(&bytes[..8]), bytes.len());
    }
    match str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(u8::is_ascii_graphic) => text.to_owned(),
        _ => format!("{bytes:02x?}"),
    }
}
