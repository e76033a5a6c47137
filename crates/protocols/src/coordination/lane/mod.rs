//! The lane: what makes the replicated tree of a keyspace, and who serves its clients, one process.
//!
//! ```text
//! client ─▶ host, its gateway ── Ask ──▶ primary     commands and questions of a turn, and that
//!                             ◀─ Told ──             the host is there; changes and answers
//! primary ── Log ──▶ members                         one entry for all commands of a turn
//! host    ◀─ Leads ──                                a hint of where the primary is
//! ```
//!
//! # What it promises
//! - All that clients are told is as if it were done one after the other, and what had ended before
//!   something began comes first: also questions, whichever host is asked.
//! - What one session asks is done in the order in which it is asked.
//! - A client is told of a change that it follows before it is told anything that shows the change,
//!   and of each such change once, also when another host leads in between.
//! - An ephemeral node is there as long as its session, and no longer.
//! - A command takes effect once. Who was told that its outcome is unknown may find either.
//!
//! # Sessions
//! A session is at one gateway, which knows when its client was last heard, and asks for its end
//! when it was silent for too long. If the gateway itself is silent for as long, the primary does.
//! Both are guarded by how often the session was attached: one that is at another gateway by then
//! goes on. A gateway that has not heard of the primary for two thirds of a session's time-out ends
//! its client's connection, so that the client looks elsewhere in time.
//!
//! # Known limits
//! - One partition: the tree is one group of hosts.
//! - Who is cut off from the primary's majority is served nothing, not even old state.
//! - A host whose clock is ahead moves the tree's time ahead, for as long as it leads and after:
//!   nodes with a time to live end early.
//!
//! | file | what it holds |
//! |---|---|
//! | `gateway/` | sessions, what clients have asked, and what they follow |
//! | `primary/` | what gateways ask, and are told |
//! | `hosted.rs`, `seat.rs` | the group here: its log, its machine, its seat |
//! | `message.rs` | frames |
//! | `run.rs`, `timer.rs` | inputs |
//! | `keys.rs` | keys as paths |
//! | `parts.rs` | who holds what, for operators |

mod gateway;
mod hosted;
mod keys;
mod message;
mod parts;
mod primary;
mod run;
mod seat;
#[cfg(test)]
mod tests;
mod timer;

use crate::coordination::ENGINE;
use crate::groups::FAILED;
use crate::groups::{Examinations, Hosts, Leads, Outbox, Routes, founders};
use crate::vsr::Kept;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use gateway::Gateway;
use hosted::Hosted;
pub use message::{Ask, Message, News, Told};
use quorate_kernel::engine::Opening;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lane::{Hosted as Adapter, Lane};
use quorate_kernel::process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};

/// The one group.
pub const GROUP: GroupId = GroupId(1);

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The founders; without any there is nobody to ask.
    pub founders: Vec<Arc<[NodeId]>>,
    /// How many members the group should have.
    pub replicas: usize,
    /// How long a member is suspected before another host takes its seat.
    pub failed: Span,
    /// How durable the data is.
    pub durability: Durability,
    /// The most bytes that a node has.
    pub value_bytes_max: usize,
    /// The shortest and the longest time-out of a session, in milliseconds.
    pub timeouts: (u32, u32),
    /// What the log keeps of what was executed, for members that lag.
    pub kept: Kept,
    /// What sessions' passwords are made of.
    pub key: [u8; 32],
}

/// What the log keeps of what was executed: while all members are there as much as may be on its
/// way to them, else what a host that was away for some seconds lacks.
const KEPT: Kept = Kept { entries: 1024, bytes: 64 * 1024 * 1024 };

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let Opening { keyspace, pace, signing_key, .. } = opening;
        ENGINE.check(&keyspace.settings)?;
        ENGINE.check(&keyspace.founding)?;
        Ok(Settings {
            founders: founders(&keyspace.birth, keyspace.founding_replicas(), 1, 1),
            replicas: keyspace.replicas(),
            failed: pace.get("failed").map_or(FAILED, Span::millis),
            durability: keyspace.durability(),
            value_bytes_max: keyspace.value_bytes_max(),
            timeouts: timeouts(keyspace),
            kept: Kept { entries: pace.get("kept").unwrap_or(KEPT.entries), ..KEPT },
            key: *signing_key,
        })
    }
}

/// The shortest and the longest time-out of sessions; none is longer than the longest.
fn timeouts(keyspace: &quorate_kernel::keyspace::Keyspace) -> (u32, u32) {
    let of = |name| keyspace.setting(name).parse().unwrap_or(u32::MAX);
    let most = of("timeout_max");
    (of("timeout_min").min(most), most)
}

/// A keyspace on one node.
#[derive(Debug)]
pub struct Coordination {
    settings: Settings,
    hosted: Option<Hosted>,
    routes: Routes,
    hosts: Hosts,
    gateway: Gateway,
    outbox: Outbox,
    /// What operators have asked.
    examining: Examinations,
    /// Whether this turn has called the replica; whether it has more to execute.
    is_touched: bool,
    is_resumed: bool,
    /// How many questions were taken here in this start: names of tickets.
    tickets: u64,
    /// When the last tick was.
    ticked: Time,
    /// Times that the group here went on with less than was acknowledged.
    losses: u64,
}

type Context<'a> = process::Context<'a, Coordination>;

impl Coordination {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Coordination {
        let mut routes = Routes::default();
        for members in &settings.founders {
            routes.found(GROUP, members);
        }
        Coordination {
            settings,
            hosted: None,
            routes,
            hosts: Hosts::default(),
            gateway: Gateway::new(Time(0)),
            outbox: Outbox::default(),
            examining: Examinations::default(),
            is_touched: false,
            is_resumed: false,
            tickets: 0,
            ticked: Time(0),
            losses: 0,
        }
    }

    /// What this node says of who leads.
    fn leads(&self) -> Option<Leads> {
        let serves = self.hosted.as_ref().is_some_and(Hosted::leads);
        Some(Leads { serves, ..self.routes.leads(GROUP)? })
    }
}

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Adapter::new(Coordination::new(settings)))
}
