//! What a run asks for: the mixes, and the generator that turns them into commands.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use quorate_kernel::rng::Rng;

use crate::load::command::Commands;
use crate::load::distribution::{Distribution, KeyChooser};

/// How many bytes of values one command of the load phase carries, at least one value.
const LOAD_COMMAND_BYTES: usize = 16 * 1024;

/// The mix of operations; the letters are YCSB's.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads only.
    C,
    /// 95 % reads of the latest keys, 5 % inserts of new ones.
    D,
    /// Half reads, half read-then-write of the same key: two commands, not atomic together.
    F,
    /// Writes only.
    Set,
    /// Reads only, of uniformly chosen keys.
    Get,
}

impl Workload {
    /// The word used on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::A => "a",
            Workload::B => "b",
            Workload::C => "c",
            Workload::D => "d",
            Workload::F => "f",
            Workload::Set => "set",
            Workload::Get => "get",
        }
    }

    /// The distribution that the workload is defined with.
    #[must_use]
    pub fn default_distribution(self) -> Distribution {
        match self {
            Workload::A | Workload::B | Workload::C | Workload::F => Distribution::Zipfian,
            Workload::D => Distribution::Latest,
            Workload::Set | Workload::Get => Distribution::Uniform,
        }
    }

    /// How many of 100 operations are reads, and what the others are.
    pub(crate) fn mix(self) -> (u64, Kind) {
        match self {
            Workload::A => (50, Kind::Update),
            Workload::B => (95, Kind::Update),
            Workload::C | Workload::Get => (100, Kind::Update),
            Workload::D => (95, Kind::Insert),
            Workload::F => (50, Kind::Modify),
            Workload::Set => (0, Kind::Update),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a command on its way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads a key.
    Read,
    /// Reads a key that is written once the reply is there.
    Modify,
    /// Writes a key that exists.
    Update,
    /// Writes a new key.
    Insert,
    /// Prepares the connection; not measured.
    Setup,
}

/// A command and the key number it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What the command is for.
    pub kind: Kind,
    /// The number of its key, the first one where there are several.
    pub key: u64,
}

/// Where a client gets its commands from.
pub trait Source {
    /// Appends the next command, or says that there is none left.
    fn next(&mut self, out: &mut Vec<u8>) -> Option<Operation>;

    /// Appends the write that follows the read half of [`Kind::Modify`].
    fn follow(&mut self, key: u64, out: &mut Vec<u8>) -> Operation;

    /// Learns that an insert has ended, whatever its outcome.
    fn inserted(&mut self, key: u64);
}

/// Draws operations of a workload for ever.
#[derive(Debug)]
pub struct Generator {
    read_percent: u64,
    other: Kind,
    rng: Rng,
    chooser: KeyChooser,
    commands: Commands,
    /// The keys below this number have all been inserted.
    key_count: u64,
    /// For each insert sent from `key_count` on, whether it has ended.
    inserts: VecDeque<bool>,
}

impl Generator {
    /// The generator of a workload over keys that exist already.
    #[must_use]
    pub fn new(
        workload: Workload,
        distribution: Distribution,
        key_count: u64,
        commands: Commands,
        seed: u64,
    ) -> Generator {
        let (read_percent, other) = workload.mix();
        Generator {
            read_percent,
            other,
            rng: Rng::new(seed),
            chooser: KeyChooser::new(distribution, key_count),
            commands,
            key_count,
            inserts: VecDeque::new(),
        }
    }
}

impl Source for Generator {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<Operation> {
        let kind = if self.rng.below(100) < self.read_percent { Kind::Read } else { self.other };
        if kind == Kind::Insert {
            let key = self.key_count + self.inserts.len() as u64;
            self.inserts.push_back(false);
            self.commands.write(key, self.rng.next(), out);
            return Some(Operation { kind, key });
        }
        let key = self.chooser.choose(&mut self.rng, self.key_count);
        match kind {
            Kind::Update => self.commands.write(key, self.rng.next(), out),
            _ => self.commands.read(key, out),
        }
        Some(Operation { kind, key })
    }

    fn follow(&mut self, key: u64, out: &mut Vec<u8>) -> Operation {
        self.commands.write(key, self.rng.next(), out);
        Operation { kind: Kind::Update, key }
    }

    fn inserted(&mut self, key: u64) {
        let index = (key - self.key_count) as usize;
        self.inserts[index] = true;
        while self.inserts.front() == Some(&true) {
            self.inserts.pop_front();
            self.key_count += 1;
        }
    }
}

/// Writes every key once, several with each command.
#[derive(Debug)]
pub struct Loader {
    rng: Rng,
    commands: Commands,
    left: Range<u64>,
    keys_per_command: u64,
}

impl Loader {
    /// A loader of the keys numbered below `key_count`.
    #[must_use]
    pub fn new(key_count: u64, value_bytes: usize, commands: Commands, seed: u64) -> Loader {
        let keys_per_command = (LOAD_COMMAND_BYTES / value_bytes.max(64)).max(1) as u64;
        let keys_per_command = keys_per_command.min(commands.keys_per_command_max());
        Loader { rng: Rng::new(seed), commands, left: 0..key_count, keys_per_command }
    }

    /// How many keys one command writes, the last one perhaps fewer.
    #[must_use]
    pub fn keys_per_command(&self) -> u64 {
        self.keys_per_command
    }
}

impl Source for Loader {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<Operation> {
        if self.left.is_empty() {
            return None;
        }
        let first = self.left.start;
        self.left.start = self.left.end.min(first + self.keys_per_command);
        self.commands.write_many(first..self.left.start, &mut self.rng, out);
        Some(Operation { kind: Kind::Update, key: first })
    }

    fn follow(&mut self, _key: u64, _out: &mut Vec<u8>) -> Operation {
        unreachable!("a load phase has no read that a write follows")
    }

    fn inserted(&mut self, _key: u64) {
        unreachable!("a load phase sends updates only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Wire;

    fn generator(workload: Workload) -> Generator {
        let commands = Commands::new(Wire::Resp, 8, 1);
        Generator::new(workload, workload.default_distribution(), 1000, commands, 5)
    }

    /// How many of 10,000 operations are of each kind.
    fn counts(workload: Workload) -> [usize; 4] {
        let mut generator = generator(workload);
        let mut out = Vec::new();
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            out.clear();
            let operation = generator.next(&mut out).unwrap();
            counts[operation.kind as usize] += 1;
            let is_read = out.starts_with(b"*2\r\n$3\r\nGET");
            assert_eq!(is_read, matches!(operation.kind, Kind::Read | Kind::Modify));
        }
        counts
    }

    #[test]
    fn mixes_have_their_shares() {
        let near = |count: usize, percent: usize| count.abs_diff(percent * 100) < 200;
        for (workload, percents) in [
            (Workload::A, [50, 0, 50, 0]),
            (Workload::B, [95, 0, 5, 0]),
            (Workload::C, [100, 0, 0, 0]),
            (Workload::D, [95, 0, 0, 5]),
            (Workload::F, [50, 50, 0, 0]),
            (Workload::Set, [0, 0, 100, 0]),
            (Workload::Get, [100, 0, 0, 0]),
        ] {
            let counts = counts(workload);
            for (count, percent) in counts.into_iter().zip(percents) {
                assert!(near(count, percent), "{workload}: {counts:?}");
            }
        }
    }

    #[test]
    fn reads_stay_below_the_first_unfinished_insert() {
        let mut generator = generator(Workload::D);
        let mut out = Vec::new();
        let mut open = Vec::new();
        while open.len() < 3 {
            let operation = generator.next(&mut out).unwrap();
            match operation.kind {
                Kind::Insert => open.push(operation.key),
                _ => assert!(operation.key < 1000),
            }
        }
        assert_eq!(open, [1000, 1001, 1002]);
        generator.inserted(1001);
        assert_eq!(generator.key_count, 1000, "key 1000 is still on its way");
        generator.inserted(1000);
        assert_eq!(generator.key_count, 1002);
        generator.inserted(1002);
        assert_eq!((generator.key_count, generator.inserts.len()), (1003, 0));
    }

    #[test]
    fn the_write_after_a_read_has_its_key() {
        let mut generator = generator(Workload::F);
        let (mut read, mut write) = (Vec::new(), Vec::new());
        generator.commands.read(77, &mut read);
        let operation = generator.follow(77, &mut write);
        assert_eq!(operation, Operation { kind: Kind::Update, key: 77 });
        assert_eq!(read[18..38], write[18..38], "both carry the same key");
    }

    #[test]
    fn a_load_writes_each_key_once() {
        let commands = Commands::new(Wire::Resp, 1024, 1);
        let mut loader = Loader::new(100, 1024, commands, 1);
        let mut out = Vec::new();
        let mut firsts = Vec::new();
        while let Some(operation) = loader.next(&mut out) {
            firsts.push(operation.key);
        }
        assert_eq!(firsts, [0, 16, 32, 48, 64, 80, 96]);
        assert_eq!(loader.keys_per_command(), 16);
        let text: Vec<&[u8]> = out.windows(4).filter(|window| window == b"user").collect();
        assert_eq!(text.len(), 100);
    }
}
