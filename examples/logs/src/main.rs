//! The store's own log of recycled segments beside the crate `raft-engine`, over the same disk.
//!
//! `measure` writes the same groups of records of 1 KiB through both, each group synced before the
//! next, in alternating turns. It prints a line for each turn, and then a table of the medians:
//! groups a second; the median, the 99th percentile and the longest of a group's write and sync;
//! processor time of the whole process for a record; bytes that the device wrote for a byte of
//! payload, whoever wrote them, so that other work on the disk shows there; and the opening. `cold`
//! rows begin in a new directory, `warm` rows once all files were used before. `bare` is the same
//! bytes written into a file full of zeros and synced, by nobody's log: what is slower than that is
//! the log, and the rest is the disk.
//!
//! `damage` writes acknowledged groups, spoils a copy of the files in several ways, opens it again
//! and prints what is left, what is missing, and whether anybody said so.
//!
//! Both logs keep records by position and are told to give up all but the newest 4,096. Of the
//! store the public way is used, which is what a host does: it includes its memtable, its tables
//! and its mark, where `raft-engine` has an index of its files.

mod bare;
mod damage;
mod measure;
mod ours;
mod raft;
mod record;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Two logs, side by side.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures both in alternating turns.
    Measure {
        /// Seconds of a turn.
        #[arg(long, default_value_t = 2)]
        seconds: u64,
        /// Turns of each log with each size of groups.
        #[arg(long, default_value_t = 5)]
        turns: usize,
        /// Records of a group, several sizes with commas between.
        #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
        groups: Vec<usize>,
        /// Where the logs lie while they are measured; it names the disk.
        #[arg(long, default_value = ".")]
        directory: PathBuf,
    },
    /// Spoils copies of both, and says what is noticed.
    Damage {
        /// Where the logs lie meanwhile.
        #[arg(long, default_value = ".")]
        directory: PathBuf,
    },
}

fn main() {
    match Arguments::parse().command {
        Command::Measure { seconds, turns, groups, directory } => {
            let plan = measure::Plan { turn: Duration::from_secs(seconds), turns, directory };
            measure::run(&plan, &groups);
        }
        Command::Damage { directory } => damage::run(&directory),
    }
}
