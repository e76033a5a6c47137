//! The seam between client protocols and the host that serves them.
//!
//! ```text
//!            host (sockets, memory, clock)          door (pure)
//!  client ── bytes ──▶ Session::feed ───────────────▶ Requests::start ── Operation ──▶ engine
//!         ◀─ bytes ─── Session::output ◀─ Session::complete ◀────────────── Outcome ──┘
//! ```
//!
//! A host opens a [`Door`] once and gets its [`Protocol`]; the protocol opens a [`Session`] for
//! each connection. The host owns listeners, sockets, descriptors, memory and time, so all doors
//! have the same bounds: clients beyond the descriptors are turned away, memory is one budget over
//! all clients of a door, a request that was begun and does not go on is ended, and a client that
//! takes no answers is closed. A session only says what it holds and what it waits for.

use crate::host::{Clock, Facts, Identity, Serving};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::{Bytes, BytesMut};
use core::fmt;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rope::Rope;
use quorate_kernel::time::Span;
use quorate_kernel::watch::Watch;

/// A client protocol that hosts can serve, as the list of all has it.
pub struct Door {
    /// Its name: in logs, metrics, `/status` and the line of a ready host, and of its section in
    /// the configuration.
    pub name: &'static str,
    /// Whom it is for, in the plural.
    pub clients: &'static str,
    /// The port that it takes unless configured otherwise. Where the door for other hosts has
    /// another port than usual, this one is as far from it as usual.
    pub port: u16,
    /// Opens it on a host.
    pub open: fn(Opening) -> Box<dyn Protocol>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What a host tells a door when it opens it.
pub struct Opening {
    /// Who the host is.
    pub identity: Identity,
    /// How the host is, whenever asked.
    pub facts: Box<dyn Facts + Send + Sync>,
    /// The port that the door listens on.
    pub port: u16,
    /// The most clients connected at once.
    pub clients_max: u64,
}

/// One door of a host, open.
pub trait Protocol {
    /// A client has connected.
    fn open(&mut self, connected: Connected, serving: &Arc<Serving>) -> Box<dyn Session>;

    /// All that a client gets to read whom the host cannot let in.
    fn turn_away(&self, shortage: &Shortage) -> Bytes;
}

/// A new connection.
#[derive(Clone, Debug, Default)]
pub struct Connected {
    /// A number that no other connection of this start has.
    pub id: u64,
    /// What the session draws its random numbers from.
    pub seed: u64,
    /// The client's address and port.
    pub peer: String,
    /// The address and port that it connected to.
    pub local: String,
}

/// The host's table of operations in hand, as a session sees it.
pub trait Requests {
    /// Starts an operation on the keyspace of a lane. Its outcome is given back to
    /// [`Session::complete`] with the same number, once. It must have been answered `within` this
    /// time, or within what the host gives all requests if the session does not say. A session has
    /// at most [`quorate_kernel::limits::CLIENT_OPERATIONS_MAX`] in hand.
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>);

    /// Follows what a lane tells. Each answer is given to [`Session::complete`] with the same
    /// number, until one that is [`Outcome::is_last`]. It counts as an operation in hand. Answers
    /// come whether or not the client takes them: a session that holds too many must end the watch
    /// and tell the client so.
    fn watch(&mut self, number: u32, lane: LaneId, watch: Watch);

    /// Ends the watch of this number; nothing more comes of it.
    fn unwatch(&mut self, number: u32);
}

/// One connection of a client: bytes in, operations out, outcomes in, bytes out.
///
/// The host's part: append what it reads to a buffer and call [`Session::feed`]; give outcomes to
/// [`Session::complete`]; write [`Session::output`]. After a completion and after output was
/// written, call `feed` again if [`Session::wants_feed`] says so: it goes on with what was held
/// back.
pub trait Session {
    /// Reads requests from the front of `input` as far as may be, and goes on with what was held
    /// back. Between two calls `input` may only be appended to.
    fn feed(&mut self, input: &mut BytesMut, clock: Clock, out: &mut dyn Requests);

    /// An operation has ended, or a watch has an answer. An outcome that comes twice is ignored.
    fn complete(&mut self, number: u32, outcome: Outcome, clock: Clock, out: &mut dyn Requests);

    /// What waits to be written to the client.
    fn output(&mut self) -> &mut Rope;

    /// Whether the host shall read from the connection. False while too much is unanswered or
    /// unwritten, and for good once the connection is to be closed.
    fn wants_input(&self) -> bool;

    /// Whether [`Session::feed`] would go on with what is in `input` or what was held back. False
    /// after a call of it until something new arrives, ends or is written.
    fn wants_feed(&self, input: &BytesMut) -> bool;

    /// How many bytes the request takes of which `input` holds the beginning, as far as it has
    /// announced; 0 if none was begun.
    fn begun_bytes(&self, input: &BytesMut) -> usize;

    /// How many bytes it keeps of requests that are not answered and of answers.
    fn held_bytes(&self) -> usize;

    /// Whether it waits for the rest of a request of which `input` holds the beginning.
    fn is_waiting_for_rest(&self, input: &BytesMut) -> bool;

    /// Whether the client has said who it is, where a protocol wants that before all else. One that
    /// says nothing keeps others out, so it does not stay.
    fn has_spoken(&self) -> bool {
        true
    }

    /// Answers the request that is arriving with an error in place of reading it. Where the next
    /// one begins is not known then, so the connection closes when those before were answered.
    fn refuse(&mut self, shortage: &Shortage);

    /// The client has sent something that is not read yet, because this session or the budget of
    /// all does not take it. A session that ends when its client is silent is not to take that for
    /// silence. Said now and then while it is so.
    fn on_unread(&mut self, _out: &mut dyn Requests) {}

    /// Keyspaces came or went.
    fn set_serving(&mut self, serving: &Arc<Serving>);

    /// Reads no further request; the connection closes when those read so far were answered.
    fn finish(&mut self);

    /// Whether the connection is to be closed once the output was written. A host that then reads
    /// on for a moment and drops what comes lets a client that is still sending see the last error.
    fn is_closing(&self) -> bool;
}

/// Why a host takes no more from a client. Nothing of what it refuses was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// As many clients are connected as the settings or the descriptors of the process allow.
    Clients,
    /// The clients of the door hold so much that a request of this length has no room.
    Memory {
        /// Its name, such as `resp`.
        door: &'static str,
        /// The length that the request has announced.
        bytes: usize,
        /// What all clients hold.
        taken: usize,
        /// What they may hold.
        limit: usize,
    },
    /// A request was begun, and nothing more of it came for so long, or too little.
    Unfinished {
        /// For how long at least.
        since: Span,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Clients => f.write_str("max number of clients reached"),
            Shortage::Memory { door, bytes, taken, limit } => write!(
                f,
                "there is no room for a command of {bytes} bytes: clients of this host hold \
                 {taken} of the {limit} bytes that {door}.memory_max allows; nothing of it was \
                 executed"
            ),
            Shortage::Unfinished { since } => write!(
                f,
                "a command was begun and nothing or too little of it came for {} s; nothing of it \
                 was executed",
                since.0 / 1_000_000_000
            ),
        }
    }
}
