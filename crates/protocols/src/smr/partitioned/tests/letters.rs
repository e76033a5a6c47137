//! The machine of these tests: numbers under names, of which the first letter says the partition:
//! `a` is of the first one, `b` of the second, and so on; `z` is of all.

use crate::smr::partitioned::{
    Bucket, Execution, Machine, OUTBOX_BYTES_MAX, Partitions, Placement, Wait,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::string::String;
use std::vec::Vec;

/// What is done, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub steps: Vec<Step>,
    /// Whether it says before what it reads.
    pub early: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Answers a number; 0 if it is not there.
    Read(String),
    /// Sets a number, whatever it is.
    Write(String, u64),
    /// Sets a number to another one, and answers it.
    Copy { from: String, to: String },
    /// Reads the number whose name is made of a letter and a number that is read.
    Follow(String, String),
    /// Removes a number.
    Remove(String),
    /// Answers what no replica but this one knows: no deterministic machine does.
    Differs,
    /// No correct peer makes it.
    Nonsense,
}

/// The numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Letters {}

std::thread_local! {
    /// What [`Step::Differs`] answers in this test, until it is set to something else.
    pub static WRONG: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// An object of this value is as large as all that a replica may keep for others.
pub const HUGE: u64 = u64::MAX;

/// What is there before the first command: a number in each of the first four partitions.
pub const FIRST: u64 = 7;

pub fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

pub fn read(name: &str) -> Step {
    Step::Read(name.into())
}

pub fn write(name: &str, number: u64) -> Step {
    Step::Write(name.into(), number)
}

pub fn copy(from: &str, to: &str) -> Step {
    Step::Copy { from: from.into(), to: to.into() }
}

fn names(step: &Step) -> Vec<&str> {
    match step {
        Step::Read(name) | Step::Write(name, _) | Step::Remove(name) => Vec::from([&**name]),
        Step::Copy { from, to } => Vec::from([&**from, to]),
        Step::Follow(name, letter) => Vec::from([&**name, letter]),
        Step::Differs | Step::Nonsense => Vec::new(),
    }
}

fn number(name: &str, on: &mut Execution<'_, Letters>) -> Result<u64, Wait> {
    Ok(on.get(name.as_bytes())?.copied().unwrap_or_default())
}

impl Machine for Letters {
    type Command = Command;
    type Object = u64;
    type Output = Vec<u64>;

    fn bucket(key: &[u8]) -> Option<Bucket> {
        (key[0] != b'z').then(|| Bucket(u16::from(key[0] - b'a')))
    }

    fn begin() -> impl Iterator<Item = (Bytes, u64)> {
        let names = ["a first", "b first", "c first", "d first", "z first"];
        names.into_iter().map(|name| (key(name), FIRST))
    }

    fn destinations(command: &Command, placement: &Placement) -> Partitions {
        let mut all = command.steps.iter().flat_map(names);
        if all.clone().any(|name| name.starts_with('z')) {
            return placement.partitions();
        }
        let one = |name: &str| placement.of(Bucket(u16::from(name.as_bytes()[0] - b'a')));
        all.by_ref().map(one).collect()
    }

    fn early(command: &Command) -> Vec<Bytes> {
        let names = command.steps.iter().filter(|_| command.early).flat_map(names);
        names.map(key).collect()
    }

    fn is_question(command: &Command) -> bool {
        command.steps.iter().all(|step| matches!(step, Step::Read(_) | Step::Follow(..)))
    }

    fn execute(command: &Command, on: &mut Execution<'_, Letters>) -> Result<Vec<u64>, Wait> {
        let mut output = Vec::new();
        for step in &command.steps {
            match step {
                Step::Read(name) => output.push(number(name, on)?),
                Step::Write(name, number) => on.put(key(name), *number)?,
                Step::Copy { from, to } => {
                    let is = number(from, on)?;
                    on.put(key(to), is)?;
                    output.push(is);
                }
                Step::Follow(name, letter) => {
                    let name = std::format!("{letter}{}", number(name, on)?);
                    output.push(number(&name, on)?);
                }
                Step::Remove(name) => on.remove(key(name))?,
                Step::Differs => output.push(WRONG.get()),
                Step::Nonsense => unreachable!("it is not put into a log"),
            }
        }
        Ok(output)
    }

    fn bytes(object: &u64) -> usize {
        if *object == HUGE { OUTBOX_BYTES_MAX } else { 8 }
    }

    fn is_sound(command: &Command) -> bool {
        !command.steps.contains(&Step::Nonsense)
    }
}
