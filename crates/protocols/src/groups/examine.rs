//! Who holds the groups, as their members say.
//!
//! What a node knows of groups that are not here are hints, and may be old. So the members are
//! asked, and those that they name, until a majority of the newest epoch that is heard of has
//! answered that they are in it and have all that they acknowledged. Nothing can have been decided
//! in a later one without the entry that ends this one in one of their logs.

use super::routes::Routes;
use super::shown::remembers;
use crate::vsr::{Epoch, Replica, Status};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::part::{Await, Awaited, Examination, Holder, Holds, Part};
use quorate_kernel::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// How long those that are silent are waited for where a majority has answered.
const PATIENCE: Span = Span::millis(500);
/// How long a question waits before it is asked again.
const AGAIN: Span = Span::millis(200);
/// The most questions of operators at a time.
const EXAMINING_MAX: usize = 64;

/// How a node stands in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stands {
    /// The newest epoch that it knows.
    pub epoch: Epoch,
    /// The members of that; ascending.
    pub members: Arc<[NodeId]>,
    /// Whether it is in that epoch, and has all that it ever acknowledged.
    pub is_whole: bool,
    /// Whether it keeps what others may need, though it is no member.
    pub owes: bool,
    /// Whether it may yet take in the host that was asked about: it would, or has not heard that
    /// the host leaves.
    pub brings: bool,
}

/// A question of an operator.
#[derive(Debug)]
pub struct Examining {
    ticket: Ticket,
    deadline: Time,
    from: u64,
    leaver: Option<NodeId>,
    began: Time,
    again: Time,
    /// Who was asked.
    asked: BTreeSet<(GroupId, NodeId)>,
    said: BTreeMap<GroupId, BTreeMap<NodeId, Stands>>,
}

impl Examining {
    /// The newest epoch of a group that is known, with its members.
    fn newest(&self, group: GroupId, known: (Epoch, Arc<[NodeId]>)) -> (Epoch, Arc<[NodeId]>) {
        let said = self.said.get(&group).into_iter().flat_map(BTreeMap::values);
        let said = said.map(|it| (it.epoch, Arc::clone(&it.members)));
        let said = said.filter(|_| !mutant!("lane_examines_itself"));
        said.chain([known]).max_by_key(|(epoch, _)| *epoch).expect("one is known")
    }

    fn of(&self, group: GroupId, node: NodeId) -> Option<&Stands> {
        self.said.get(&group)?.get(&node)
    }

    /// Whom the host that leaves must wait for.
    fn awaited(&self, group: GroupId, members: &[NodeId]) -> Vec<Awaited> {
        let Some(leaver) = self.leaver else { return Vec::new() };
        let own = match self.of(group, leaver) {
            _ if members.contains(&leaver) => None,
            None => Some(Await::Answer),
            Some(said) => said.owes.then_some(Await::Release),
        };
        let keeps = members.contains(&leaver) || own.is_some();
        let what = |node: &NodeId| match self.of(group, *node) {
            None => Some(Await::Answer),
            Some(said) if said.brings => Some(Await::Refrain),
            Some(said) => (keeps && !said.is_whole).then_some(Await::Data),
        };
        let others = members.iter().filter(|node| **node != leaver);
        let others = others.filter_map(|node| Some((*node, what(node)?)));
        let all = own.map(|what| (leaver, what)).into_iter().chain(others);
        all.map(|(node, what)| Awaited { node, what }).collect()
    }
}

/// The questions of operators at a host.
#[derive(Debug, Default)]
pub struct Examinations {
    of: BTreeMap<u64, Examining>,
    /// How many there were.
    begun: u64,
}

/// Says what is here of a group in an epoch, with these members and what each of them holds.
pub type PartOf<'a> = dyn Fn(GroupId, Epoch, &[NodeId], &dyn Fn(NodeId) -> Holds) -> Part + 'a;

/// What a host knows of a keyspace's groups.
pub struct Known<'a> {
    /// Where their primaries are.
    pub routes: &'a Routes,
    /// The groups; none if nobody has founded any.
    pub groups: &'a [GroupId],
    /// A group in an epoch, with what is here of it.
    pub part: &'a PartOf<'a>,
}

/// Who is asked how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandQuestion {
    /// The host.
    pub node: NodeId,
    /// Names the question.
    pub question: u64,
    /// The group.
    pub group: GroupId,
    /// A host that leaves.
    pub leaver: Option<NodeId>,
}

impl Known<'_> {
    /// What is known here of a group's newest epoch.
    fn newest(&self, group: GroupId) -> (Epoch, Arc<[NodeId]>) {
        let leads = self.routes.leads(group).expect("every group has a route");
        (leads.view.epoch, leads.members)
    }
}

/// How this node stands in a group, of which it may have a replica.
///
/// # Panics
/// The group is none of the routes.
#[must_use]
pub fn stands(routes: &Routes, group: GroupId, replica: Option<&Replica>, brings: bool) -> Stands {
    let leads = routes.leads(group).expect("every group has a route");
    let (epoch, members) = (leads.view.epoch, leads.members);
    invariant!(epoch > Epoch(0), "a group begins with its founders");
    // That it has heard of an epoch does not mean that it is in it.
    let is_in = |it: &Replica| {
        let is_its = it.configuration().epoch == epoch || mutant!("lane_hints_are_seats");
        is_its && it.status() != Status::Learner
    };
    let is_whole = replica.is_some_and(|it| is_in(it) && remembers(it));
    let owes = replica.is_some_and(Replica::owes);
    invariant!(!(is_whole && owes), "a member owes nothing");
    Stands { epoch, members, is_whole, owes, brings }
}

impl Examinations {
    /// An operator asks who holds what.
    ///
    /// # Errors
    /// There are too many at a time; nothing was done.
    pub fn begin(
        &mut self,
        ticket: Ticket,
        (from, leaver): (u64, Option<NodeId>),
        (now, deadline): (Time, Time),
    ) -> Result<(), Refusal> {
        if self.of.len() >= EXAMINING_MAX {
            return Err(Refusal::Overloaded);
        }
        let (began, again) = (now, now);
        let (asked, said) = (BTreeSet::new(), BTreeMap::new());
        let examining = Examining { ticket, deadline, from, leaver, began, again, asked, said };
        self.begun += 1;
        self.of.insert(self.begun, examining);
        Ok(())
    }

    /// A node says how it stands in a group of the keyspace.
    ///
    /// # Errors
    /// Nobody has asked it.
    pub fn hear(
        &mut self,
        from: NodeId,
        (question, group): (u64, GroupId),
        stands: Stands,
    ) -> Result<(), &'static str> {
        let Some(examining) = self.of.get_mut(&question) else { return Ok(()) };
        if !examining.asked.contains(&(group, from)) {
            return Err("who was asked answers");
        }
        examining.said.entry(group).or_default().insert(from, stands);
        let heard = examining.said.get(&group).map_or(0, BTreeMap::len);
        invariant!(heard > 0, "what was said is kept");
        Ok(())
    }

    /// Questions that are due are asked again: of whom.
    pub fn tick(&mut self, known: &Known<'_>, now: Time) -> Vec<StandQuestion> {
        let mut all = Vec::new();
        for (question, examining) in &mut self.of {
            if examining.again > now {
                continue;
            }
            examining.again = now + AGAIN;
            let silent = examining.silent(known);
            examining.asked.extend(silent.iter().copied());
            let (question, leaver) = (*question, examining.leaver);
            let asked = silent.into_iter();
            all.extend(asked.map(|(group, node)| StandQuestion { node, question, group, leaver }));
        }
        all
    }

    /// Answers questions of which enough is known, or whose time is over. What is answered tells
    /// what others have said, and promises nothing.
    pub fn settle(&mut self, known: &Known<'_>, now: Time) -> Vec<(Ticket, Outcome)> {
        let mut settled = Vec::new();
        self.of.retain(|_, examining| match examining.outcome(known, now) {
            Some(outcome) => {
                settled.push((examining.ticket, outcome));
                false
            }
            None => true,
        });
        settled
    }
}

impl Examining {
    /// Who was not heard yet, of each group.
    fn silent(&self, known: &Known<'_>) -> Vec<(GroupId, NodeId)> {
        let of = |group: &GroupId| {
            let group = *group;
            let (_, members) = self.newest(group, known.newest(group));
            let nodes: BTreeSet<NodeId> = members.iter().copied().chain(self.leaver).collect();
            nodes.into_iter().map(move |node| (group, node))
        };
        let all = known.groups.iter().flat_map(of);
        all.filter(|(group, node)| self.of(*group, *node).is_none()).collect()
    }

    /// The answer, if enough is known or the time is over.
    fn outcome(&self, known: &Known<'_>, now: Time) -> Option<Outcome> {
        let mut lacking = None;
        for group in known.groups {
            let (epoch, members) = self.newest(*group, known.newest(*group));
            let is_in = |node: &&NodeId| {
                let said = self.of(*group, **node);
                said.is_some_and(|said| said.is_whole && said.epoch == epoch)
            };
            let (reached, needed) = (members.iter().filter(is_in).count(), members.len() / 2 + 1);
            if reached < needed {
                lacking = Some((reached, needed));
            }
        }
        let is_late = now >= self.deadline;
        let has_all = self.silent(known).is_empty() || now - self.began >= PATIENCE;
        match lacking {
            None if has_all || is_late => Some(Outcome::Examined(self.examined(known).into())),
            Some((reached, needed)) if is_late => {
                let count = |count| u8::try_from(count).unwrap_or(u8::MAX);
                let (reached, needed) = (count(reached), count(needed));
                Some(Outcome::Refused(Refusal::NoQuorum { reached, needed }))
            }
            _ => None,
        }
    }

    fn examined(&self, known: &Known<'_>) -> Examination {
        if known.groups.is_empty() {
            return Examination { parts: Vec::from([Part::unknown()]), next: None };
        }
        let parts = known.groups.iter().map(|group| {
            let (epoch, members) = self.newest(*group, known.newest(*group));
            let holds = |node: NodeId| match self.of(*group, node) {
                Some(said) if said.is_whole && said.epoch == epoch => Holds::Confirmed,
                _ => Holds::Some,
            };
            let mut part = (known.part)(*group, epoch, &members, &holds);
            let said = self.said.get(group);
            let keeping = said.into_iter().flatten().filter(|(_, said)| said.owes);
            let keeping = keeping.filter(|(node, _)| !members.contains(node));
            let kept = |node| Holder { node, holds: Holds::Some, has_seat: false };
            part.holders.extend(keeping.map(|(node, _)| kept(*node)));
            part.awaited = self.awaited(*group, &members);
            part
        });
        let parts = parts.filter(|part| part.range.high >= self.from);
        Examination { parts: parts.collect(), next: None }
    }
}
