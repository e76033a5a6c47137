//! What a host holds of a keyspace; all of it is volatile but the log and what the machine stores.

use super::gateway::Gateway;
use super::hosted::Hosted;
use super::rules::ENGINE;
use crate::groups::FAILED;
use crate::groups::{Examinations, Hosts, Leads, Outbox, Routes, founders};
use crate::vsr::Kept;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
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
    /// Whether hosts answer what sessions read themselves ([`super::gateway::here`]).
    pub session_reads: bool,
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
            session_reads: session_reads(keyspace),
            kept: Kept { entries: pace.get("kept").unwrap_or(KEPT.entries), ..KEPT },
            key: *signing_key,
        })
    }
}

/// The shortest and the longest time-out of sessions; none is longer than the longest.
pub(super) fn timeouts(keyspace: &quorate_kernel::keyspace::Keyspace) -> (u32, u32) {
    let of = |name| keyspace.setting(name).parse().unwrap_or(u32::MAX);
    let most = of("timeout_max");
    (of("timeout_min").min(most), most)
}

/// Whether hosts answer what sessions read; of a keyspace that does not say they do not.
pub(super) fn session_reads(keyspace: &quorate_kernel::keyspace::Keyspace) -> bool {
    keyspace.setting("reads") == "session"
}

/// A keyspace on one node.
#[derive(Debug)]
pub struct Coordination {
    pub(super) settings: Settings,
    pub(super) hosted: Option<Hosted>,
    pub(super) routes: Routes,
    pub(super) hosts: Hosts,
    pub(super) gateway: Gateway,
    pub(super) outbox: Outbox,
    /// What operators have asked.
    pub(super) examining: Examinations,
    /// Whether this turn has called the replica; whether it has more to execute.
    pub(super) is_touched: bool,
    pub(super) is_resumed: bool,
    /// How many questions were taken here in this start: names of tickets.
    pub(super) tickets: u64,
    /// When the last tick was.
    pub(super) ticked: Time,
    /// When the one before it was: what had come by then was heard when the last one came, whatever
    /// has halted this host. So it is then that somebody is found to be silent.
    pub(super) judged: Time,
    /// Since when what clients have sent may not have been handed on, as told since the last tick.
    pub(super) unread: Option<Time>,
    /// Times that the group here went on with less than was acknowledged.
    pub(super) losses: u64,
}

pub(super) type Context<'a> = process::Context<'a, Coordination>;

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
            judged: Time(0),
            unread: None,
            losses: 0,
        }
    }

    /// What this node says of who leads.
    pub(super) fn leads(&self) -> Option<Leads> {
        let serves = self.hosted.as_ref().is_some_and(Hosted::leads);
        Some(Leads { serves, ..self.routes.leads(GROUP)? })
    }
}

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Adapter::new(Coordination::new(settings)))
}
