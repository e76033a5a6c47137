//! The machine of these tests: numbers under keys of one letter or more.

use crate::smr::{Execution, Machine};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::string::String;

/// What is done with a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Adds to it, and makes it if it is not there. Answers the sum.
    Add(String, u64),
    /// Removes it. Answers what it was.
    Remove(String),
    /// Adds, tells, and then does nothing of it.
    Waver(String),
    /// Makes one of the time, and answers that.
    Time(String),
    /// No correct peer makes it.
    Nonsense,
    /// Answers with this number, which counts as so many bytes. The state keeps 0 of it.
    Large(u64),
}

/// The numbers.
#[derive(Debug)]
pub enum Numbers {}

/// What is there before the first command.
pub const FIRST: (&str, u64) = ("first", 7);

pub fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

pub fn add(name: &str, by: u64) -> Command {
    Command::Add(name.into(), by)
}

pub fn remove(name: &str) -> Command {
    Command::Remove(name.into())
}

impl Machine for Numbers {
    type Command = Command;
    type Object = u64;
    type Output = u64;
    type Change = (String, u64);

    fn begin() -> impl Iterator<Item = (Bytes, u64)> {
        core::iter::once((key(FIRST.0), FIRST.1))
    }

    fn kept(command: &Command, answer: &u64) -> Option<(u64, usize)> {
        matches!(command, Command::Large(_)).then_some((0, *answer as usize))
    }

    fn execute(command: &Command, on: &mut Execution<'_, Numbers>) -> u64 {
        let now_ms = on.now_ms();
        let mut set = |name: &String, number| {
            on.put(key(name), number);
            on.tell((name.clone(), number));
            number
        };
        match command {
            Command::Add(name, by) => {
                let is = on.get(&key(name)).copied().unwrap_or_default() + by;
                on.put(key(name), is);
                on.tell((name.clone(), is));
                is
            }
            Command::Remove(name) => {
                let was = on.get(&key(name)).copied().unwrap_or_default();
                on.remove(key(name));
                on.tell((name.clone(), 0));
                was
            }
            Command::Waver(name) => {
                let number = set(name, u64::MAX);
                on.discard();
                number
            }
            Command::Time(name) => set(name, now_ms),
            Command::Large(bytes) => *bytes,
            Command::Nonsense => unreachable!("it is not put into a log"),
        }
    }

    fn bytes(_: &u64) -> usize {
        8
    }

    fn change_bytes((name, _): &(String, u64)) -> usize {
        size_of::<(String, u64)>() + name.len()
    }

    fn is_sound(command: &Command) -> bool {
        *command != Command::Nonsense
    }
}
