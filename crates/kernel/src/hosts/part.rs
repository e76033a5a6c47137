//! The parts of a lane's data: who holds each of them, and what is left when hosts go.
//!
//! Every lane is asked the same ([`crate::operation::Control::Examine`]), whatever it places its
//! data by. Drains, removals, the ring's report and readiness follow from the answer.

use crate::ids::NodeId;
use crate::operation::Outcome;
use crate::process::Inspect;
use crate::view::{Range, View, ViewId};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What one set of hosts holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What the part is called.
    pub name: PartName,
    /// The tokens of its keys.
    pub range: Range,
    /// Who holds it, or some of it. A host that holds it in two ways is listed twice.
    pub holders: Vec<Holder>,
    /// How many hosts that hold all of it it takes to read, write and change it.
    pub quorum: usize,
    /// Whether the host that says so has yet to get back what it held, or to learn who holds it,
    /// before it can serve clients.
    pub owes: bool,
    /// What the host that says so has of it, where its engine shows that.
    pub here: Option<Here>,
    /// What keeps a host that leaves, and that has no seat in it any more: empty once the others
    /// need nothing of that host, and none of them can take it in again.
    pub awaited: Vec<Awaited>,
}

/// A host for which one that leaves must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Awaited {
    /// The host's node; that of the leaver itself, if it is not done.
    pub node: NodeId,
    /// What is awaited of it.
    pub what: Await,
}

/// What is awaited of a host before another one may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Await {
    /// That it says anything at all.
    Answer,
    /// That it has got all that it shall hold.
    Data,
    /// That it gives up to take the leaver in, or that it hears that the leaver leaves.
    Refrain,
    /// Of the leaver: that it hears that it leaves.
    Hear,
    /// Of the leaver: that nobody needs any more what it keeps.
    Release,
}

impl Await {
    /// What is awaited, after the name of the host.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Await::Answer => "does not answer",
            Await::Data => "has yet to get data",
            Await::Refrain => "may take it in again",
            Await::Hear => "has not heard yet that it leaves",
            Await::Release => "keeps data for others",
        }
    }
}

/// What a part is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartName {
    /// A group, in this view.
    Group(ViewId),
    /// The keys of a fixed partition.
    Partition(u32),
    /// Everything: it is not known yet which parts there are.
    Unknown,
}

/// A host that holds a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The host's node.
    pub node: NodeId,
    /// How much it holds.
    pub holds: Holds,
    /// Whether a host that is drained must give this up by itself: a member its membership, the
    /// host of a partition that partition. Who holds the keys for another has no seat here.
    pub has_seat: bool,
}

/// How much of a part a host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// All of it: it said so when it was asked.
    Confirmed,
    /// All of it, by what the cluster agreed on. Whether the host is there is not known.
    Recorded,
    /// Perhaps not all of it.
    Some,
}

/// What one host has of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// What it is in the part, in one word: `ready` if it has everything.
    pub status: String,
    /// What it does for it, in one word.
    pub role: &'static str,
    /// How far a transfer to it has come, or whom it waits for; `-` if there is nothing of that.
    pub moving: String,
    /// About how many bytes it holds.
    pub bytes: u64,
    /// How many keys this start has moved to it.
    pub moved_keys: u64,
    /// How many bytes this start has moved to it.
    pub moved_bytes: u64,
}

/// What is left of a part without some hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// As many hosts as it takes hold all of it.
    Enough,
    /// Fewer hosts than it takes are there, or are known to hold all of it.
    TooFew,
    /// No host is known to hold all of it.
    Nothing,
}

/// The answer of a lane that was asked for its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// The parts, in the order of their tokens.
    pub parts: Vec<Part>,
    /// From which token on to ask next; none at the end.
    pub next: Option<u64>,
}

impl Outcome {
    /// All parts of a lane.
    #[must_use]
    pub fn parts(parts: Vec<Part>) -> Outcome {
        Outcome::Examined(Box::new(Examination { parts, next: None }))
    }
}

impl Part {
    /// A part of a group whose members are those of a view and hold this much.
    #[must_use]
    pub fn of_group(view: &View, quorum: usize, holds: impl Fn(NodeId) -> Holds) -> Part {
        let members = view.members().iter();
        let holders =
            members.map(|node| Holder { node: *node, holds: holds(*node), has_seat: true });
        Part {
            name: PartName::Group(view.id),
            range: view.range,
            holders: holders.collect(),
            quorum,
            owes: false,
            here: None,
            awaited: Vec::new(),
        }
    }

    /// All that there is, for who does not know yet which parts there are.
    #[must_use]
    pub fn unknown() -> Part {
        Part {
            name: PartName::Unknown,
            range: Range::ALL,
            holders: Vec::new(),
            quorum: 1,
            owes: true,
            here: None,
            awaited: Vec::new(),
        }
    }

    /// How many seats a host has in it.
    #[must_use]
    pub fn seats_of(&self, node: NodeId) -> usize {
        self.holders.iter().filter(|it| it.node == node && it.has_seat).count()
    }

    /// Whether a host that leaves has nothing more to do with it.
    #[must_use]
    pub fn is_free_of(&self, node: NodeId) -> bool {
        self.seats_of(node) == 0 && self.awaited.is_empty()
    }

    /// How many of its holders are neither among these hosts nor absent.
    #[must_use]
    pub fn staying(&self, hosts: &[NodeId], is_absent: impl Fn(NodeId) -> bool) -> usize {
        let stays = |it: &&Holder| !hosts.contains(&it.node) && !is_absent(it.node);
        self.holders.iter().filter(stays).count()
    }

    /// What is left of it without these hosts, while others are absent: those may come back, so
    /// what an absent host confirmed a moment ago is not lost.
    #[must_use]
    pub fn without(&self, hosts: &[NodeId], is_absent: impl Fn(NodeId) -> bool) -> Left {
        let has_all = |it: &&Holder| match it.holds {
            Holds::Confirmed => true,
            Holds::Recorded => !is_absent(it.node),
            Holds::Some => false,
        };
        let stays = |it: &&Holder| !hosts.contains(&it.node);
        let complete = self.holders.iter().filter(stays).filter(has_all).count();
        match complete.min(self.staying(hosts, is_absent)) {
            _ if complete == 0 => Left::Nothing,
            left if left < self.quorum => Left::TooFew,
            _ => Left::Enough,
        }
    }

    /// Shows it as a row of the table `groups`, if the host has something of it to show.
    pub fn show(&self, into: &mut dyn Inspect) {
        let (Some(here), PartName::Group(id)) = (&self.here, self.name) else { return };
        let members: Vec<String> =
            self.holders.iter().map(|holder| format!("{}", holder.node)).collect();
        into.row(
            "groups",
            &[
                ("group", &format!("{:016x}", id.group.0)),
                ("low", &format!("{:016x}", self.range.low)),
                ("high", &format!("{:016x}", self.range.high)),
                ("version", &id.version),
                ("members", &members.join(",")),
                ("status", &here.status),
                ("role", &here.role),
                ("moving", &here.moving),
                ("bytes", &here.bytes),
                ("moved_keys", &here.moved_keys),
                ("moved_bytes", &here.moved_bytes),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GroupId;

    fn group(members: &[u64], confirmed: &[u64]) -> Part {
        let members = members.iter().copied().map(NodeId).collect();
        let view = View::new(ViewId { group: GroupId(7), version: 1 }, Range::ALL, members);
        Part::of_group(&view, view.majority(), |node| match confirmed.contains(&node.0) {
            true => Holds::Confirmed,
            false => Holds::Some,
        })
    }

    fn without(part: &Part, gone: u64, absent: &[u64]) -> Left {
        part.without(&[NodeId(gone)], |node| absent.contains(&node.0))
    }

    #[test]
    fn a_quorum_must_be_there_and_a_quorum_must_have_everything() {
        let group = group(&[1, 2, 3], &[2, 3]);
        assert_eq!(without(&group, 1, &[1]), Left::Enough);
        assert_eq!(without(&group, 1, &[1, 2]), Left::TooFew, "two of three are away");
        assert_eq!(group.staying(&[NodeId(1)], |node| node == NodeId(2)), 1);
        assert_eq!(without(&group, 2, &[]), Left::TooFew, "it is one of the two that have it");
        assert_eq!(without(&group, 9, &[]), Left::Enough, "it holds nothing of it");
    }

    #[test]
    fn what_only_hosts_that_go_have_is_lost() {
        let single = group(&[1], &[1]);
        assert_eq!(without(&single, 1, &[]), Left::Nothing);
        assert_eq!(without(&single, 2, &[]), Left::Enough);
    }

    #[test]
    fn who_is_recorded_to_have_everything_must_be_there() {
        let holder = |node, holds| Holder { node: NodeId(node), holds, has_seat: node == 1 };
        let holders = Vec::from([
            holder(1, Holds::Recorded),
            holder(2, Holds::Recorded),
            holder(3, Holds::Some),
        ]);
        let name = PartName::Partition(0);
        let part = Part { name, holders, quorum: 1, ..Part::unknown() };
        assert_eq!(without(&part, 1, &[]), Left::Enough);
        assert_eq!(without(&part, 1, &[2]), Left::Nothing, "the third fetches yet");
        assert_eq!((part.seats_of(NodeId(1)), part.seats_of(NodeId(2))), (1, 0));
    }
}
