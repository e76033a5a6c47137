//! Who holds the groups, as their members say.
//!
//! What a node knows of groups that are not here are hints, and may be old. So the members are
//! asked, and those that they name, until a majority of the newest epoch that is heard of has
//! answered that they are in it and have all that they acknowledged. Nothing can have been decided
//! in a later one without the entry that ends this one in one of their logs.

use super::{Context, Message, Serializable};
use crate::vsr::{Epoch, Status};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
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

impl Serializable {
    /// An operator asks who holds what.
    pub(super) fn examine(
        &mut self,
        ticket: Ticket,
        (from, leaver): (u64, Option<NodeId>),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        if self.examining.len() >= EXAMINING_MAX {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Overloaded));
        }
        let (began, again) = (cx.now, cx.now);
        let (asked, said) = (BTreeSet::new(), BTreeMap::new());
        let examining = Examining { ticket, deadline, from, leaver, began, again, asked, said };
        self.questions += 1;
        self.examining.insert(self.questions, examining);
        self.tick_examined(cx);
    }

    /// What is known here of a group's newest epoch.
    fn known(&self, group: GroupId) -> (Epoch, Arc<[NodeId]>) {
        let leads = self.routes.leads(group).expect("every group has a route");
        (leads.view.epoch, leads.members)
    }

    /// Somebody wants to know how this node stands in a group.
    pub(super) fn on_stand(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        leaver: Option<NodeId>,
        cx: &mut Context<'_>,
    ) {
        if self.shape.groups().all(|it| it != group) {
            return cx.fx.refuse("a group of the keyspace is asked for");
        }
        let (epoch, members) = self.known(group);
        invariant!(epoch > Epoch(0), "a group begins with its founders");
        let hosted = self.groups.get(&group);
        // That it has heard of an epoch does not mean that it is in it.
        let is_in = |it: &super::Hosted| {
            let is_its =
                it.replica.configuration().epoch == epoch || mutant!("lane_hints_are_seats");
            is_its && it.replica.status() != Status::Learner
        };
        let is_whole = hosted.is_some_and(|it| is_in(it) && it.remembers());
        let owes = hosted.is_some_and(|it| it.replica.owes());
        invariant!(!(is_whole && owes), "a member owes nothing");
        let brings = leaver.is_some_and(|node| self.may_bring(group, node, cx));
        let stands = Stands { epoch, members, is_whole, owes, brings };
        // What is durable here already says so, or what a majority has; nobody counts on more.
        cx.fx.send(from, Message::Stands { question, group, stands });
    }

    /// A node says how it stands in a group.
    pub(super) fn on_stands(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        stands: Stands,
        cx: &mut Context<'_>,
    ) {
        if self.shape.groups().all(|it| it != group) {
            return cx.fx.refuse("a group of the keyspace is told of");
        }
        let Some(examining) = self.examining.get_mut(&question) else { return };
        if !examining.asked.contains(&(group, from.node)) {
            return cx.fx.refuse("who was asked answers");
        }
        invariant!(examining.began <= cx.now, "answers follow questions");
        examining.said.entry(group).or_default().insert(from.node, stands);
        let heard = examining.said.get(&group).map_or(0, BTreeMap::len);
        invariant!(heard > 0, "what was said is kept");
        self.settle_examined(question, cx);
    }

    /// Time has passed: questions are asked again, answered with what is known, or given up.
    pub(super) fn tick_examined(&mut self, cx: &mut Context<'_>) {
        let questions: Vec<u64> = self.examining.keys().copied().collect();
        for question in questions {
            self.settle_examined(question, cx);
            let Some(examining) = self.examining.get_mut(&question) else { continue };
            if examining.again > cx.now {
                continue;
            }
            examining.again = cx.now + AGAIN;
            let leaver = examining.leaver;
            let silent = self.silent(question);
            if let Some(examining) = self.examining.get_mut(&question) {
                examining.asked.extend(silent.iter().copied());
            }
            for (group, node) in silent {
                // A question promises nothing.
                cx.fx.send_early(node, Message::Stand { question, group, leaver });
            }
        }
    }

    /// Who was not heard yet, of each group.
    fn silent(&self, question: u64) -> Vec<(GroupId, NodeId)> {
        let examining = &self.examining[&question];
        let of = |group: GroupId| {
            let (_, members) = examining.newest(group, self.known(group));
            let nodes: BTreeSet<NodeId> = members.iter().copied().chain(examining.leaver).collect();
            nodes.into_iter().map(move |node| (group, node))
        };
        let all = self.shape.groups().flat_map(of);
        all.filter(|(group, node)| examining.of(*group, *node).is_none()).collect()
    }

    /// Answers a question if enough is known, or its time is over.
    fn settle_examined(&mut self, question: u64, cx: &mut Context<'_>) {
        let Some(examining) = self.examining.get(&question) else { return };
        let mut lacking = None;
        for group in self.shape.groups().filter(|_| !self.settings.founders.is_empty()) {
            let (epoch, members) = examining.newest(group, self.known(group));
            let is_in = |node: &&NodeId| {
                let said = examining.of(group, **node);
                said.is_some_and(|said| said.is_whole && said.epoch == epoch)
            };
            let (reached, needed) = (members.iter().filter(is_in).count(), members.len() / 2 + 1);
            if reached < needed {
                lacking = Some((reached, needed));
            }
        }
        let is_late = cx.now >= examining.deadline;
        let has_all = self.silent(question).is_empty() || cx.now - examining.began >= PATIENCE;
        let outcome = match lacking {
            None if has_all || is_late => Outcome::Examined(self.examined(examining).into()),
            Some((reached, needed)) if is_late => {
                let count = |count| u8::try_from(count).unwrap_or(u8::MAX);
                let (reached, needed) = (count(reached), count(needed));
                Outcome::Refused(Refusal::NoQuorum { reached, needed })
            }
            _ => return,
        };
        let Some(examining) = self.examining.remove(&question) else { return };
        // It tells what others have said, and promises nothing.
        cx.fx.answer_early(examining.ticket, outcome);
    }

    fn examined(&self, examining: &Examining) -> Examination {
        if self.settings.founders.is_empty() {
            return Examination { parts: Vec::from([Part::unknown()]), next: None };
        }
        let groups = self.shape.groups();
        let groups = groups.filter(|group| self.shape.range(*group).high >= examining.from);
        let parts = groups.map(|group| {
            let (epoch, members) = examining.newest(group, self.known(group));
            let holds = |node: NodeId| match examining.of(group, node) {
                Some(said) if said.is_whole && said.epoch == epoch => Holds::Confirmed,
                _ => Holds::Some,
            };
            let mut part = self.part(group, epoch, &members, holds);
            let said = examining.said.get(&group);
            let keeping = said.into_iter().flatten().filter(|(_, said)| said.owes);
            let keeping = keeping.filter(|(node, _)| !members.contains(node));
            let kept = |node| Holder { node, holds: Holds::Some, has_seat: false };
            part.holders.extend(keeping.map(|(node, _)| kept(*node)));
            part.awaited = examining.awaited(group, &members);
            part
        });
        Examination { parts: parts.collect(), next: None }
    }
}
