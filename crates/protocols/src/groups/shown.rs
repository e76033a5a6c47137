//! What operators are shown of a replica.

use crate::vsr::{Epoch, Replica, Status};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::part::{Here, Holder, Holds, Part, PartName};
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Time;
use quorate_kernel::view::{Range, ViewId};

/// What is shown of a replica whose log ends with other members: it answers for the present ones
/// no more without having committed that.
pub const CHANGING: &str = "changes members";

/// The members that a replica waits for to go on, if it stands still.
fn waits_for(replica: &Replica, now: Time) -> Option<String> {
    let waits = replica.waits_for(now);
    let names: Vec<String> = waits.iter().map(|node| format!("{node}")).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Whether it has everything, and takes part.
#[must_use]
pub fn is_ready(replica: &Replica) -> bool {
    replica.status() == Status::Normal && replica.is_settled()
}

/// Whether it has all that it ever acknowledged.
#[must_use]
pub fn remembers(replica: &Replica) -> bool {
    replica.status() != Status::Recovering && replica.is_settled()
}

/// How it is here.
#[must_use]
pub fn here(replica: &Replica, leads: bool, now: Time) -> Here {
    let waits = waits_for(replica, now);
    let status = match replica.status() {
        _ if waits.is_some() => "waiting",
        Status::Normal if replica.is_settled() => "ready",
        Status::Normal => "copying",
        Status::ViewChange => "electing",
        Status::Recovering => "recovering",
        Status::Learner => "learning",
    };
    let role = match (leads, replica.status()) {
        (true, _) => "primary",
        (false, Status::Learner) => "learner",
        (false, _) => "member",
    };
    Here {
        status: String::from(status),
        role,
        moving: match waits {
            Some(waits) => format!("waits for {waits}"),
            None if replica.closing().is_some() => String::from(CHANGING),
            None => String::from("-"),
        },
        bytes: 0,
        moved_keys: 0,
        moved_bytes: 0,
    }
}

/// A group in an epoch, with what is here of it: its replica, if there is one, and whether that
/// leads.
#[must_use]
pub fn part(
    (group, epoch, range): (GroupId, Epoch, Range),
    members: &[NodeId],
    holds: &dyn Fn(NodeId) -> Holds,
    hosted: Option<(&Replica, bool)>,
    now: Time,
) -> Part {
    let holder = |node| Holder { node, holds: holds(node), has_seat: true };
    Part {
        name: PartName::Group(ViewId { group, version: epoch.0 }),
        range,
        holders: members.iter().copied().map(holder).collect(),
        quorum: members.len() / 2 + 1,
        owes: hosted.is_some_and(|(replica, _)| !remembers(replica)),
        here: hosted.map(|(replica, leads)| here(replica, leads, now)),
        awaited: Vec::new(),
    }
}

/// A row of the table of logs.
pub fn show_log(group: GroupId, replica: &Replica, now: Time, into: &mut dyn Inspect) {
    let view = replica.view();
    let waits = waits_for(replica, now).unwrap_or_else(|| String::from("-"));
    into.row(
        "logs",
        &[
            ("group", &format!("{:016x}", group.0)),
            ("view", &format!("{view:?}")),
            ("commit", &replica.commit().0),
            ("applied", &replica.applied().0),
            ("end", &replica.log().end().0),
            ("waits_for", &waits),
        ],
    );
}
