//! What all connections of a node share: its keyspaces, and what it says about itself.

use super::commands::Table;
use super::error::{CommandError, shown};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::engine::Served;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::time::WallTime;

/// The version of Redis whose behaviour is offered; clients choose by it what they may ask.
pub const REDIS_VERSION: &str = "7.2.4";

/// What the host is; fixed while it runs.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The version of this software.
    pub version: String,
    /// The cluster.
    pub cluster: ClusterId,
    /// The node that serves the door.
    pub node: NodeId,
    /// 40 hexadecimal digits, new with each start.
    pub run_id: String,
    /// The process.
    pub process_id: u32,
    /// The port of this door.
    pub tcp_port: u16,
    /// When the host started.
    pub started: WallTime,
    /// Whether data is written to disk before it is acknowledged.
    pub is_durable: bool,
    /// The most connections at once.
    pub clients_max: u64,
}

/// What changes while the host runs, for `INFO` and `CLIENT LIST`. Read on the session's thread.
pub trait Facts {
    /// Whether the node can serve clients.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether it is known which keyspaces there are. A host that has just started does not know.
    fn knows_keyspaces(&self) -> bool {
        true
    }

    /// How many clients are connected.
    fn clients(&self) -> u64 {
        1
    }

    /// How many connections were accepted so far.
    fn connections_total(&self) -> u64 {
        0
    }

    /// How many commands were read so far.
    fn commands_total(&self) -> u64 {
        0
    }

    /// The resident memory of the process.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// About how many keys a lane holds, if that is known without asking.
    fn keys(&self, _lane: LaneId) -> Option<u64> {
        None
    }

    /// Calls `each` with the line of every other client, as [`super::Session::describe`] gives it.
    fn other_clients(&self, _id: u64, _each: &mut dyn FnMut(&str)) {}
}

/// The keyspace that number 0 means once the first one was dropped: clients that never select one
/// have always meant it.
const DEFAULT: &str = "default";

/// Facts of a host that tells nothing, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl Facts for NoFacts {}

/// What all connections of a node share.
pub struct Shared {
    keyspaces: Vec<Option<Served>>,
    /// What the host is.
    pub identity: Identity,
    pub(crate) facts: Arc<dyn Facts + Send + Sync>,
    pub(crate) table: Table,
}

impl Shared {
    /// The keyspaces in the order of their numbers, none where a number is not given or its
    /// keyspace was dropped; a connection starts with the first.
    ///
    /// # Panics
    /// There is no number.
    #[must_use]
    pub fn new(
        keyspaces: Vec<Option<Served>>,
        identity: Identity,
        facts: Box<dyn Facts + Send + Sync>,
    ) -> Shared {
        assert!(!keyspaces.is_empty(), "a door needs at least one number");
        Shared { keyspaces, identity, facts: facts.into(), table: Table::new() }
    }

    /// The same host with other keyspaces; a number keeps its keyspace as long as that is there.
    ///
    /// # Panics
    /// There is no number.
    #[must_use]
    pub fn with_keyspaces(&self, keyspaces: Vec<Option<Served>>, is_durable: bool) -> Shared {
        assert!(!keyspaces.is_empty(), "a door needs at least one number");
        let identity = Identity { is_durable, ..self.identity.clone() };
        Shared { keyspaces, identity, facts: Arc::clone(&self.facts), table: Table::new() }
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

    /// The longest argument a request may have: the longest value, and never less than what makes
    /// an over-long key an error of its own.
    #[must_use]
    pub fn argument_bytes_max(&self) -> usize {
        let longest = self.open().map(|(_, served)| served.value_bytes_max).max();
        longest.unwrap_or(0).max(KEY_BYTES_MAX * 2)
    }

    /// The number of the keyspace a client means by a number or a name.
    pub(crate) fn find(&self, text: &[u8]) -> Result<usize, CommandError> {
        if let Some(number) = super::commands::integer(text) {
            let number = usize::try_from(number).ok();
            let found = number.filter(|number| self.numbered(*number).is_some());
            return found.ok_or_else(|| self.or_starting(CommandError::Database));
        }
        let found = self.named(text).map(|(number, _)| number);
        let unknown = || CommandError::Keyspace { name: shown(text, 128), known: self.names() };
        found.ok_or_else(|| self.or_starting(unknown()))
    }

    /// The keyspace that a connection works on.
    pub(crate) fn selected(&self, number: usize) -> Result<&Served, CommandError> {
        let dropped = || CommandError::Dropped { number, known: self.names() };
        self.numbered(number).ok_or_else(|| self.or_starting(dropped()))
    }

    /// Why a keyspace is not found: while none is known, that is the reason.
    fn or_starting(&self, error: CommandError) -> CommandError {
        if self.facts.knows_keyspaces() { error } else { CommandError::Starting }
    }

    fn numbered(&self, number: usize) -> Option<&Served> {
        let found = self.keyspaces.get(number).and_then(Option::as_ref);
        if number > 0 {
            return found;
        }
        found.or_else(|| self.named(DEFAULT.as_bytes()).map(|(_, served)| served))
    }

    fn named(&self, name: &[u8]) -> Option<(usize, &Served)> {
        self.open().find(|(_, served)| served.keyspace.name.as_bytes() == name)
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.open().map(|(_, served)| &served.keyspace.name[..]).collect();
        names.join(", ")
    }
}
