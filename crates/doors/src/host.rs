//! What a door knows of the host that serves it: who it is, how it is, and its keyspaces.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use quorate_kernel::engine::Served;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::time::{Time, WallTime};

/// Both clocks of the host, read once a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Monotonic time.
    pub now: Time,
    /// The wall clock.
    pub wall: WallTime,
}

/// What does not change while the host runs.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The version of this software.
    pub version: String,
    /// Drawn when the cluster was made; the same on all its hosts.
    pub cluster: ClusterId,
    /// The node that serves the door.
    pub node: NodeId,
    /// 40 hexadecimal digits, new with each start.
    pub run_id: String,
    /// What the operating system calls the process by.
    pub process_id: u32,
    /// When the process started.
    pub started: WallTime,
}

/// How much of the disk a host's data has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Sorted tables, those that were merged and are not removed yet included.
    pub table_bytes: u64,
    /// Of the segments of its log, those that wait to be used again included.
    pub log_bytes: u64,
}

/// What changes while the host runs. Read on the core thread, so nothing here may wait.
pub trait Facts {
    /// Whether the node can serve clients.
    fn is_ready(&self) -> bool {
        true
    }

    /// How many clients are connected to this door.
    fn clients(&self) -> u64 {
        1
    }

    /// How many connections this door has accepted since the start.
    fn connections_total(&self) -> u64 {
        0
    }

    /// How many operations were answered since the start, in all keyspaces that there are.
    fn operations_total(&self) -> u64 {
        0
    }

    /// The resident memory of the process in bytes.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// How much of the disk the host's data has, of all keyspaces together, as it was counted last;
    /// none if that is not known.
    fn stored(&self) -> Option<Stored> {
        None
    }

    /// A number that a lane's engine has shown of its state, a second ago at most; none if it has
    /// shown none of that name. Takes a lock: not for every operation.
    fn shown(&self, _lane: LaneId, _name: &str) -> Option<u64> {
        None
    }

    /// Calls `each` with the line of every other client of this door.
    fn other_clients(&self, _id: u64, _each: &mut dyn FnMut(&str)) {}
}

/// Facts of a host that tells nothing, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl Facts for NoFacts {}

/// The keyspace that number 0 means once the first one was dropped: clients that never select one
/// have always meant it.
const DEFAULT: &str = "default";

/// The keyspaces of a host at one moment. Each has a number that is never given to another.
#[derive(Clone, Debug)]
pub struct Serving {
    keyspaces: Vec<Option<Served>>,
    is_known: bool,
    is_durable: bool,
}

impl Default for Serving {
    /// A host that has just started: which keyspaces there are is not known yet.
    fn default() -> Serving {
        Serving { keyspaces: vec![None], is_known: false, is_durable: true }
    }
}

impl Serving {
    /// The keyspaces in the order of their numbers, none where a number is not given or its
    /// keyspace was dropped. `is_durable` if all data is on disk before it is acknowledged.
    ///
    /// # Panics
    /// There is no number.
    #[must_use]
    pub fn new(keyspaces: Vec<Option<Served>>, is_durable: bool) -> Serving {
        assert!(!keyspaces.is_empty(), "a door needs at least one number");
        Serving { keyspaces, is_known: true, is_durable }
    }

    /// Whether it is known which keyspaces there are.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether all data is on disk before it is acknowledged.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// The keyspaces in the order of their numbers.
    #[must_use]
    pub fn keyspaces(&self) -> &[Option<Served>] {
        &self.keyspaces
    }

    /// The keyspaces that can be chosen, with their numbers.
    pub fn open(&self) -> impl Iterator<Item = (usize, &Served)> {
        let all = self.keyspaces.iter().enumerate();
        all.filter_map(|(number, served)| Some((number, served.as_ref()?)))
    }

    /// The keyspace of a number. 0 is what clients mean that choose none: the first keyspace, or
    /// the one named `default` once the first was dropped.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Option<&Served> {
        let found = self.keyspaces.get(number).and_then(Option::as_ref);
        if number > 0 {
            return found;
        }
        found.or_else(|| self.named(DEFAULT.as_bytes()).map(|(_, served)| served))
    }

    /// The keyspace of a name, with its number.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Option<(usize, &Served)> {
        self.open().find(|(_, served)| served.keyspace.name.as_bytes() == name)
    }

    /// All names, for errors.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.open().map(|(_, served)| &served.keyspace.name[..]).collect();
        names.join(", ")
    }

    /// The longest value in bytes that any of the keyspaces takes; 0 if there is none.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        self.open().map(|(_, served)| served.value_bytes_max).max().unwrap_or(0)
    }
}
