//! What all connections of the door share, and what keyspaces are called here.

use super::commands::Table;
use super::error::{CommandError, shown};
use super::session::Session;
use crate::door::{self, Connected, Door, Opening, Protocol, Shortage};
use crate::host::{Facts, Identity, Serving};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::engine::Served;
use quorate_kernel::limits::KEY_BYTES_MAX;

/// The version of Redis whose behaviour is offered; clients choose by it what they may ask.
pub const REDIS_VERSION: &str = "7.2.4";

/// The door for Redis clients.
pub const DOOR: Door = Door {
    name: "resp",
    clients: "Redis clients",
    port: 7413,
    open: |opening| Box::new(Resp(Shared::new(opening))),
};

/// What all connections share; fixed while the host runs.
pub struct Shared {
    pub(crate) identity: Identity,
    pub(crate) facts: Box<dyn Facts + Send + Sync>,
    pub(crate) port: u16,
    pub(crate) clients_max: u64,
    pub(crate) table: Table,
}

impl Shared {
    /// What connections share at a door that a host opens.
    #[must_use]
    pub fn new(opening: Opening) -> Arc<Shared> {
        let Opening { identity, facts, port, clients_max } = opening;
        Arc::new(Shared { identity, facts, port, clients_max, table: Table::new() })
    }
}

/// The door, open.
struct Resp(Arc<Shared>);

impl Protocol for Resp {
    fn open(&mut self, connected: Connected, serving: &Arc<Serving>) -> Box<dyn door::Session> {
        Box::new(Session::new(connected, Arc::clone(&self.0), Arc::clone(serving)))
    }

    fn turn_away(&self, shortage: &Shortage) -> Bytes {
        Bytes::from(format!("-ERR {shortage}\r\n"))
    }
}

/// The longest argument a request may have: the longest value, and never less than what makes an
/// over-long key an error of its own.
pub(crate) fn argument_bytes_max(serving: &Serving) -> usize {
    serving.value_bytes_max().max(KEY_BYTES_MAX * 2)
}

/// The number of the keyspace a client means by a number or a name.
pub(crate) fn find(serving: &Serving, text: &[u8]) -> Result<usize, CommandError> {
    if let Some(number) = super::commands::integer(text) {
        let number = usize::try_from(number).ok();
        let found = number.filter(|number| serving.numbered(*number).is_some());
        return found.ok_or_else(|| or_starting(serving, CommandError::Database));
    }
    let found = serving.named(text).map(|(number, _)| number);
    let unknown = || CommandError::Keyspace { name: shown(text, 128), known: serving.names() };
    found.ok_or_else(|| or_starting(serving, unknown()))
}

/// The keyspace that a connection works on.
pub(crate) fn selected(serving: &Serving, number: usize) -> Result<&Served, CommandError> {
    let dropped = || CommandError::Dropped { number, known: serving.names() };
    serving.numbered(number).ok_or_else(|| or_starting(serving, dropped()))
}

/// Why a keyspace is not found: while none is known, that is the reason.
fn or_starting(serving: &Serving, error: CommandError) -> CommandError {
    if serving.is_known() { error } else { CommandError::Starting }
}
