//! `raft-engine`: entries of one group of it, and its purge on a thread beside.

use crate::record::{RECORD_BYTES, Subject};
use protobuf::well_known_types::BytesValue;
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The one group that is written to.
const GROUP: u64 = 1;
/// Its purge is called each time that so many bytes were written.
const PURGE_EVERY: usize = 32 << 20;

/// Entries are the records; their index is the number at their beginning.
pub struct Entries;

impl MessageExt for Entries {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        u64::from_be_bytes(entry.value[..8].try_into().expect("records are longer"))
    }
}

/// An open engine, and the thread that purges it.
pub struct Raft {
    engine: Arc<Engine>,
    entries: Vec<BytesValue>,
    since_purge: usize,
    /// Each request has a place for its answer.
    purges: Option<Sender<Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

/// With as much space as the store's log has: files of 64 MiB, used again, and none compressed.
pub fn settings(directory: &Path, is_prefilled: bool) -> Config {
    Config {
        dir: directory.to_str().expect("the path is text").to_owned(),
        recovery_mode: RecoveryMode::TolerateTailCorruption,
        batch_compression_threshold: ReadableSize(0),
        target_file_size: ReadableSize::mb(64),
        purge_threshold: ReadableSize::mb(128),
        enable_log_recycle: true,
        prefill_for_recycle: is_prefilled,
        ..Config::default()
    }
}

/// Recycles its files, and has some that are full of zeros from the start.
pub fn prefilled(directory: &Path) -> Box<dyn Subject> {
    Box::new(Raft::open(settings(directory, true)).expect("a new directory opens"))
}

/// Recycles its files.
pub fn recycling(directory: &Path) -> Box<dyn Subject> {
    Box::new(Raft::open(settings(directory, false)).expect("a new directory opens"))
}

impl Raft {
    /// Opens a directory.
    pub fn open(config: Config) -> raft_engine::Result<Raft> {
        let engine = Arc::new(Engine::open(config)?);
        let (purges, requests): (_, Receiver<Sender<()>>) = channel();
        let purged = engine.clone();
        let purge = move || {
            for answer in requests {
                let lagging = purged.purge_expired_files().expect("the disk takes it");
                assert!(lagging.is_empty(), "the one group gives up what is old");
                // Whoever does not wait for the answer is gone.
                answer.send(()).ok();
            }
        };
        let thread = Some(std::thread::spawn(purge));
        Ok(Raft { engine, entries: Vec::new(), since_purge: 0, purges: Some(purges), thread })
    }

    /// What the log has at a number.
    pub fn read(&self, number: u64) -> raft_engine::Result<Option<Vec<u8>>> {
        let entry = self.engine.get_entry::<Entries>(GROUP, number)?;
        Ok(entry.map(|entry| entry.value))
    }

    /// Writes a group, and syncs it if `is_synced`.
    pub fn append(&mut self, group: &[Vec<u8>], give_up: Option<u64>, is_synced: bool) {
        self.entries.resize_with(group.len(), BytesValue::new);
        for (entry, record) in self.entries.iter_mut().zip(group) {
            entry.value.clone_from(record);
        }
        let mut batch = LogBatch::with_capacity(group.len());
        batch.add_entries::<Entries>(GROUP, &self.entries).expect("it is no longer than allowed");
        if let Some(index) = give_up {
            batch.add_command(GROUP, Command::Compact { index });
        }
        self.engine.write(&mut batch, is_synced).expect("the disk takes it");
    }

    fn purge(&self) -> Receiver<()> {
        let (answer, answered) = channel();
        let purges = self.purges.as_ref().expect("it is open");
        purges.send(answer).expect("the thread runs");
        answered
    }
}

impl Subject for Raft {
    fn write(&mut self, _first: u64, group: &[Vec<u8>], give_up: Option<u64>) {
        self.append(group, give_up, true);
        self.since_purge += group.len() * RECORD_BYTES;
        if self.since_purge >= PURGE_EVERY {
            self.since_purge = 0;
            drop(self.purge());
        }
    }

    fn settle(&mut self) {
        self.purge().recv().expect("the thread answers");
    }
}

impl Drop for Raft {
    fn drop(&mut self) {
        self.purges = None;
        if let Some(thread) = self.thread.take() {
            // What it could say was a panic of its own.
            drop(thread.join());
        }
    }
}
