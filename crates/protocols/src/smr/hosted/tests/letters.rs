//! What clients ask of letters, and one place that answers the same.

use crate::smr::partitioned::Bucket;
use crate::smr::partitioned::tests::letters::{Command, FIRST, Letters, Step, copy, read, write};
use crate::testing::partitions::{Load, Seen};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Names that clients ask for: of two partitions, and one that both have.
const NAMES: [&str; 5] = ["a first", "a1", "b first", "b1", "z1"];

/// A command of these steps.
pub fn command(steps: &[Step]) -> Command {
    Command { steps: steps.to_vec(), early: false }
}

/// Clients that write what nobody has written before.
#[derive(Default)]
pub struct Clients {
    written: u64,
}

impl Clients {
    fn step(&mut self, rng: &mut Rng) -> Step {
        let name = |rng: &mut Rng| *rng.pick(&NAMES).expect("there are names");
        match rng.below(8) {
            0..3 => {
                self.written += 1;
                write(name(rng), 1000 + self.written)
            }
            3 | 4 => copy(name(rng), name(rng)),
            5 => Step::Remove(name(rng).into()),
            _ => read(name(rng)),
        }
    }
}

impl Load<Letters> for Clients {
    fn asks(&mut self, _client: usize, _now_ms: u64, rng: &mut Rng) -> Command {
        let count = 1 + rng.below(3);
        let early = rng.below(2) == 0;
        Command { steps: (0..count).map(|_| self.step(rng)).collect(), early }
    }

    fn last(&mut self, _now_ms: u64) -> Command {
        command(&NAMES.map(read))
    }

    fn buckets(&self) -> Vec<Bucket> {
        Vec::new()
    }
}

/// One place that has all letters.
pub struct Judge(BTreeMap<String, u64>);

impl Judge {
    pub fn new() -> Judge {
        let names = ["a first", "b first", "c first", "d first", "z first"];
        Judge(names.map(|name| (name.into(), FIRST)).into())
    }

    /// Executes a command. What is wrong with its answer, if something is.
    pub fn execute(&mut self, seen: &Seen<Letters>, answer: &[u64]) -> Result<(), String> {
        let mut expected = Vec::new();
        for step in &seen.command.steps {
            let number = |name: &String| self.0.get(name).copied().unwrap_or_default();
            match step {
                Step::Read(name) => expected.push(number(name)),
                Step::Write(name, to) => _ = self.0.insert(name.clone(), *to),
                Step::Copy { from, to } => {
                    let is = number(from);
                    expected.push(is);
                    self.0.insert(to.clone(), is);
                }
                Step::Remove(name) => _ = self.0.remove(name),
                _ => return Err(format!("clients do not ask for {step:?}")),
            }
        }
        let said = || format!("{:?}: {answer:?}, and not {expected:?}", seen.command);
        (expected == answer).then_some(()).ok_or_else(said)
    }
}
