//! The lane that keeps the roll: who takes part in the cluster, as all who do have agreed.
//!
//! The roll is Rapid's ([`crate::membership`]) or PRIME's ([`crate::membership::prime`]). This lane
//! gives it time and messages, has hosts come again that were removed and are not gone, and tells
//! the other lanes of the node what it says. Seats follow that: primaries wish for members that are
//! on the roll, and replace those that are not ([`crate::groups`]). A cluster may do without it;
//! seats follow rumours then.
//!
//! # Promise
//! - Rapid: what two nodes tell of one number is the same.
//! - PRIME: of the changes that two nodes tell of both tell in one order. One may have missed some,
//!   with a low probability, and finds out. After a division one side gives way.
//! - A host that is started joins, and is let in as long as a majority of the members, or of its
//!   observers with PRIME, can talk to each other. One that is removed while it runs, as others
//!   could not reach it, comes again.
//! - A host that has left the cluster leaves the roll, also if it is down.
//! - A node that no change reaches, or that is no member, says so ([`Roll::goes_on`]). With PRIME
//!   one does too that doubts its view for long, or whose view has no majority of the hosts: a few
//!   may have removed all others.
//!
//! Nobody may rest anything on it that must not be lost (ADR 38).
//!
//! # Names
//! On a roll an id comes once and goes once, and a host may come often. So a host's *name* on the
//! roll is made of its node id and of how often it has come ([`names`]); the paper's processes draw
//! a new id each time (§3). A member's metadata is its host's node id. Each message carries how
//! often its sender has come, so that nobody speaks under another host's name, and the name that it
//! is for: what was said to a host before it came again is not taken for the present.
//!
//! ```text
//! host ── Message(coming, whom, the kind's message) ─▶ host
//! overlay ── News::Ring ─▶ lane ── News::Roll ─▶ lanes of keyspaces with groups
//! removed: coming + 1, stored; joins by the hosts that the ring knows. Rapid's that it was on it
//!   keeps until it is on a later one: who is behind may hear what was decided from it alone
//! ```
//!
//! # What leaves when
//! As of the roll's messages. How often a host has come is stored before its votes under the new
//! name are, in one batch with them at most: a start that has forgotten the last coming has
//! promised nothing in it. PRIME promises nothing; its view is stored before anybody is told of it,
//! so that a cluster that is started again as a whole goes on from it.
//!
//! # Known limits
//! - Founders are those of the cluster's birth. In a cluster that is older than its roll those that
//!   are gone must be outvoted: without a majority of the founders there is no roll, and seats
//!   follow rumours.
//! - While the cluster is being shut down nobody is observed: hosts end one after the other.
//!
//! | file | what it holds |
//! |---|---|
//! | `lane.rs` | the process |
//! | `keeper.rs` | the seam: what a kind of roll is asked and told |
//! | `rapid.rs`, `prime.rs` | the two kinds |
//! | `wishes.rs` | who comes, comes again, leaves and is sent away |
//! | `names.rs` | names of hosts on the roll |
//! | `message.rs`, `keys.rs` | what is sent and stored |

mod keeper;
mod keys;
mod lane;
mod message;
pub mod names;
mod prime;
mod rapid;
#[cfg(test)]
mod tests;
mod wishes;

pub use lane::RollLane;
pub use message::{Message, Says};

use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::process::Context as Cx;
use quorate_kernel::ring::Ring;
use quorate_kernel::roll::Kind;
#[cfg(doc)]
use quorate_kernel::roll::Roll;

type Context<'a> = Cx<'a, RollLane>;

/// What the lane begins with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The hosts with which the cluster was born, at each of these; none at one that has joined.
    pub founders: Vec<NodeId>,
    /// How the roll is kept: alike at all hosts.
    pub kind: Kind,
}

impl Settings {
    /// At a host that was given this ring at the cluster's birth, if it was.
    #[must_use]
    pub fn of(kind: Kind, founding: Option<&Ring>) -> Settings {
        let hosts = founding.into_iter().flat_map(Ring::hosts);
        Settings { founders: hosts.map(|host| host.who.node).collect(), kind }
    }
}

/// The lane.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(RollLane::new(settings)))
}
