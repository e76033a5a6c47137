//! Who holds what, and what is shown of it.

use super::Serializable;
use super::groups::hosted::Hosted;
use super::message::Leads;
use crate::vsr::{Epoch, Status};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::part::{Here, Holder, Holds, Part, PartName};
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Time;
use quorate_kernel::view::ViewId;

impl Hosted {
    /// The members that it waits for to go on, if it stands still.
    fn waits_for(&self, now: Time) -> Option<String> {
        let waits = self.replica.waits_for(now);
        let names: Vec<String> = waits.iter().map(|node| format!("{node}")).collect();
        (!names.is_empty()).then(|| names.join(" "))
    }

    /// Whether it has everything, and takes part.
    fn is_ready(&self) -> bool {
        self.replica.status() == Status::Normal && self.replica.is_settled()
    }

    fn here(&self, now: Time) -> Here {
        let replica = &self.replica;
        let waits = self.waits_for(now);
        let status = match replica.status() {
            _ if waits.is_some() => "waiting",
            Status::Normal if replica.is_settled() => "ready",
            Status::Normal => "copying",
            Status::ViewChange => "electing",
            Status::Recovering => "recovering",
            Status::Learner => "learning",
        };
        let role = match (self.member.leads(), replica.status()) {
            (true, _) => "primary",
            (false, Status::Learner) => "learner",
            (false, _) => "member",
        };
        Here {
            status: String::from(status),
            role,
            moving: waits.map_or_else(|| String::from("-"), |waits| format!("waits for {waits}")),
            bytes: 0,
            moved_keys: 0,
            moved_bytes: 0,
        }
    }
}

impl Serializable {
    /// The groups as this node knows them. Of others it can say who the members are, not what they
    /// have.
    pub(super) fn known_parts(&self) -> Vec<Part> {
        if self.routes.all().next().is_none() {
            return Vec::from([Part::unknown()]);
        }
        let part = |leads: Leads| {
            let hosted = self.groups.get(&leads.group).filter(|hosted| hosted.is_ready());
            let holds = |node| match hosted.is_some_and(|hosted| node == hosted.me) {
                true => Holds::Confirmed,
                false => Holds::Some,
            };
            self.part(leads.group, leads.view.epoch, &leads.members, holds)
        };
        self.routes.all().map(part).collect()
    }

    /// A group in an epoch, with what is here of it.
    pub(super) fn part(
        &self,
        group: GroupId,
        epoch: Epoch,
        members: &[NodeId],
        holds: impl Fn(NodeId) -> Holds,
    ) -> Part {
        let hosted = self.groups.get(&group);
        let holder = |node| Holder { node, holds: holds(node), has_seat: true };
        Part {
            name: PartName::Group(ViewId { group, version: epoch.0 }),
            range: self.shape.range(group),
            holders: members.iter().copied().map(holder).collect(),
            quorum: members.len() / 2 + 1,
            owes: hosted.is_some_and(|hosted| !hosted.remembers()),
            here: hosted.map(|hosted| hosted.here(self.ticked)),
            awaited: Vec::new(),
        }
    }

    /// Shows the state.
    pub(super) fn show(&self, into: &mut dyn Inspect) {
        let groups = || self.groups.values();
        let owes = groups().any(|hosted| !hosted.remembers());
        into.field("ready", &!owes);
        into.field("groups", &self.groups.len());
        into.field("groups_led", &groups().filter(|it| it.member.leads()).count());
        into.field("groups_lacking_data", &groups().filter(|it| !it.is_ready()).count());
        into.field("asked", &groups().map(|it| it.questions.len()).sum::<usize>());
        into.field("transactions", &groups().map(|it| it.member.in_hand()).sum::<usize>());
        into.field("operations", &self.clients.len());
        into.field("conflicts", &self.counters.conflicts);
        into.field("retries", &self.counters.retries);
        into.field("expired", &self.counters.expired);
        into.field("losses", &self.counters.losses);
        for (group, hosted) in &self.groups {
            let replica = &hosted.replica;
            let view = replica.view();
            let waits = hosted.waits_for(self.ticked).unwrap_or_else(|| String::from("-"));
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
    }
}

impl Hosted {
    /// Whether it has all that it ever acknowledged.
    pub(super) fn remembers(&self) -> bool {
        self.replica.status() != Status::Recovering && self.replica.is_settled()
    }
}
