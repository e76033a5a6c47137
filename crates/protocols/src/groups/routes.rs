//! Where the primaries of the groups are, as far as is known: hints, on which nothing rests but
//! who is asked first, and whether a host may speak for a group.
//!
//! Who the members of a group are is believed of its members as they were known so far, and of this
//! node's own replica. Another host may be a newcomer that leads by now, or be wrong: what it says
//! is a claim, and the members are asked. It is believed when for [`SILENT`] none of them has said
//! that it leads, or that it knows of as late a view: where all of them are gone, or behind, who
//! leads the group now is found all the same.

use super::frames::Leads;
use crate::vsr::{Configuration, Epoch, Op, ViewNumber};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::VSR_BEHIND_MAX;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// How long the known members of a group must be silent, before others are believed who leads it.
/// Who leads says so each second, and is believed the fourth time.
const SILENT: Span = Span::millis(2500);
/// How long they are not asked again.
const ASKED: Span = Span::millis(500);
/// For how long a host that has answered is taken to be there.
const RECENT: Span = Span::millis(200);

/// What follows from what somebody says of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing: it was known, or is late.
    Known,
    /// Another host is to be asked from now on.
    News,
    /// Its members are to be asked whether it is so.
    Claim,
}

/// What a host says of a group that is no member of it as far as is known: that it leads it by now.
#[derive(Debug)]
struct Claim {
    members: Arc<[NodeId]>,
    view: ViewNumber,
    /// Since when no known member has said otherwise though they were asked.
    since: Time,
    /// When they were asked last.
    asked: Option<Time>,
    /// Whether they were silent for so long that it is believed.
    is_believed: bool,
}

/// What is known of one group.
#[derive(Debug)]
struct Route {
    members: Arc<[NodeId]>,
    view: ViewNumber,
    /// How many primaries in a row have not answered.
    silent: u64,
    /// Whether the primary of the view has said that it serves.
    serves: bool,
    /// Who has answered a question last, and when.
    answered: Option<(NodeId, Time)>,
    /// What another says of a later view. No member that leads, or knows of as late a one, has
    /// spoken since.
    claim: Option<Claim>,
}

impl Route {
    /// One that begins, or that somebody has told who may.
    fn new(members: &Arc<[NodeId]>, view: ViewNumber, serves: bool) -> Route {
        let (members, answered, claim) = (Arc::clone(members), None, None);
        Route { members, view, silent: 0, serves, answered, claim }
    }

    /// The members and the view that are believed.
    fn believed(&self) -> (&Arc<[NodeId]>, ViewNumber) {
        match &self.claim {
            Some(claim) if claim.is_believed => (&claim.members, claim.view),
            _ => (&self.members, self.view),
        }
    }

    /// Who is known to be a member says something, or the replica here.
    fn learn(&mut self, leads: &Leads, is_own: bool) -> Hint {
        // What members say goes before what others do; but of one that knows of no later view, and
        // leads in none, not that there is none: members that are behind would hold each other up.
        let is_over = |claim: &Claim| claim.view <= leads.view || (!is_own && leads.serves);
        let ended = self.claim.take_if(|claim| is_over(claim));
        let was_believed = ended.is_some_and(|claim| claim.is_believed);
        let is_known = leads.view == self.view;
        // An epoch has one set of members.
        let is_other = leads.view.epoch == self.view.epoch && leads.members != self.members;
        let is_late = leads.view < self.view || is_other;
        let is_told = is_known && (!leads.serves || (self.serves && self.silent == 0));
        if is_late || is_told {
            if was_believed {
                // That the member's own view has started was not heard.
                (self.silent, self.serves) = (0, false);
            }
            return if was_believed { Hint::News } else { Hint::Known };
        }
        let claim = self.claim.take();
        *self = Route { claim, ..Route::new(&leads.members, leads.view, leads.serves) };
        Hint::News
    }

    /// Another host says that it leads the group.
    fn hear_claim(&mut self, leads: &Leads, now: Time) -> Hint {
        if !leads.serves || leads.view <= self.view {
            return Hint::Known;
        }
        let (members, view) = (Arc::clone(&leads.members), leads.view);
        let (since, asked, was_believed, is_new) = match self.claim.take() {
            Some(claim) => {
                let is_new = claim.view != view || claim.members != members;
                (claim.since, claim.asked, claim.is_believed, is_new)
            }
            None => (now, None, false, true),
        };
        let is_believed = now - since >= SILENT;
        let is_news = is_believed && (!was_believed || is_new || self.silent > 0);
        let is_due = !is_news && asked.is_none_or(|asked| now - asked >= ASKED);
        let asked = if is_due { Some(now) } else { asked };
        self.claim = Some(Claim { members, view, since, asked, is_believed });
        match (is_news, is_due) {
            (true, _) => {
                (self.silent, self.serves) = (0, true);
                Hint::News
            }
            (false, true) => Hint::Claim,
            (false, false) => Hint::Known,
        }
    }
}

/// All groups.
#[derive(Debug, Default)]
pub struct Routes {
    of: BTreeMap<GroupId, Route>,
}

impl Routes {
    /// A group begins with these members.
    pub fn found(&mut self, group: GroupId, members: &Arc<[NodeId]>) {
        let view = ViewNumber::first(Epoch(1));
        self.of.insert(group, Route::new(members, view, false));
    }

    /// Somebody says who the members of a group are, and in which view: another host, or the
    /// replica here.
    pub fn learn(&mut self, from: Option<NodeId>, leads: &Leads, now: Time) -> Hint {
        let Some(route) = self.of.get_mut(&leads.group) else { return Hint::Known };
        let (epoch, view) = (leads.view.epoch.0, leads.view.view);
        // Nobody is believed a number that can follow no other.
        let is_far = epoch.saturating_sub(route.view.epoch.0) > VSR_BEHIND_MAX
            || view.saturating_sub(route.view.view) > VSR_BEHIND_MAX;
        if is_far {
            return Hint::Known;
        }
        let is_member = from.is_none_or(|node| route.members.contains(&node));
        if is_member || mutant!("lane_believes_any_hint") {
            route.learn(leads, from.is_none())
        } else {
            route.hear_claim(leads, now)
        }
    }

    /// What is known of a group.
    #[must_use]
    pub fn leads(&self, group: GroupId) -> Option<Leads> {
        let (members, view) = self.of.get(&group)?.believed();
        Some(Leads { group, members: Arc::clone(members), view, serves: false })
    }

    /// Who is asked: whoever seems to be the primary.
    #[must_use]
    pub fn primary(&self, group: GroupId) -> Option<NodeId> {
        let route = self.of.get(&group)?;
        self.primary_after(group, route.silent)
    }

    /// The primary of the newest view that is known, whoever is silent: a question that waits for a
    /// key is no reason to take votes and decisions elsewhere.
    #[must_use]
    pub fn leader(&self, group: GroupId) -> Option<NodeId> {
        if mutant!("lane_votes_follow_silence") {
            return self.primary(group);
        }
        self.primary_after(group, 0)
    }

    /// The primary of a view so many later than the newest that is known.
    fn primary_after(&self, group: GroupId, silent: u64) -> Option<NodeId> {
        let (members, view) = self.of.get(&group)?.believed();
        let before = view.epoch.0.checked_sub(1).map(Epoch)?;
        let asked = ViewNumber { view: view.view.wrapping_add(silent), ..view };
        Configuration::after(before, members, Op(0)).primary(group, asked)
    }

    /// A host answers a question as the primary of a group.
    pub fn answers(&mut self, group: GroupId, node: NodeId, now: Time) {
        if let Some(route) = self.of.get_mut(&group) {
            route.answered = Some((node, now));
        }
    }

    /// A host has not answered a question that it was asked at some time. If it has answered
    /// another one since, and just now, it is there: the question waits for something.
    pub fn is_late(&mut self, group: GroupId, node: NodeId, (asked, now): (Time, Time)) {
        let answered = self.of.get(&group).and_then(|route| route.answered);
        let is_recent = |at: Time| at >= asked && now - at < RECENT;
        let is_there = answered.is_some_and(|(one, at)| one == node && is_recent(at));
        if !is_there || mutant!("lane_late_is_silent") {
            self.is_silent(group, node);
        }
    }

    /// A host did not answer for a group, or says that it does not lead it: the next one is asked.
    pub fn is_silent(&mut self, group: GroupId, node: NodeId) {
        if self.primary(group) == Some(node)
            && let Some(route) = self.of.get_mut(&group)
        {
            route.silent = route.silent.wrapping_add(1);
        }
    }

    /// How many members it takes to serve a group.
    #[must_use]
    pub fn majority(&self, group: GroupId) -> usize {
        self.of.get(&group).map_or(1, |route| route.believed().0.len() / 2 + 1)
    }

    /// The members of a group that are believed who leads it.
    #[must_use]
    pub fn known(&self, group: GroupId) -> Arc<[NodeId]> {
        self.of.get(&group).map_or_else(|| Arc::from([]), |route| Arc::clone(&route.members))
    }

    /// Whether a host is a member of a group, as far as is known.
    #[must_use]
    pub fn is_member(&self, group: GroupId, node: NodeId) -> bool {
        let is_in =
            |route: &Route| route.members.contains(&node) || route.believed().0.contains(&node);
        self.of.get(&group).is_some_and(is_in)
    }

    /// The members of all groups.
    pub fn members(&self) -> impl Iterator<Item = NodeId> {
        self.of.values().flat_map(|route| route.believed().0.iter().copied())
    }

    /// All groups with their members and views.
    pub fn all(&self) -> impl Iterator<Item = Leads> {
        self.of.keys().filter_map(|group| self.leads(*group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn whoever_is_silent_is_followed_by_all_others_and_later_views_alone_are_news() {
        let members: Arc<[NodeId]> = [1, 2, 3].map(NodeId).into();
        let mut routes = Routes::default();
        routes.found(GroupId(1), &members);
        let mut asked = BTreeSet::new();
        for _ in 0..3 {
            let node = routes.primary(GroupId(1)).expect("it is known");
            asked.insert(node);
            routes.is_silent(GroupId(1), NodeId(9));
            assert_eq!(routes.primary(GroupId(1)), Some(node), "another one is meant");
            routes.is_silent(GroupId(1), node);
            assert_ne!(routes.primary(GroupId(1)), Some(node), "another one is asked");
        }
        let first = routes.leader(GroupId(1));
        routes.is_silent(GroupId(1), first.expect("it is known"));
        assert_eq!(routes.leader(GroupId(1)), first, "votes still go to it");
        assert_eq!(asked.len(), 3, "all are asked");
        let of = |epoch, view, members: &[u64]| leads((epoch, view), members);
        let mut learn = |leads: &Leads| routes.learn(Some(NodeId(2)), leads, Time(0));
        assert_eq!(learn(&of(1, 0, &[1, 2, 3])), Hint::Known);
        assert_eq!(learn(&of(1, u64::MAX, &[1, 2, 3])), Hint::Known);
        assert_eq!(learn(&of(1, 5, &[1, 2])), Hint::Known, "an epoch has one set of members");
        assert_eq!(learn(&of(2, 0, &[2])), Hint::News);
        assert_eq!(learn(&of(1, 5, &[1, 2, 3])), Hint::Known);
        let serves = Leads { serves: true, ..of(2, 0, &[2]) };
        assert_eq!((learn(&serves), learn(&serves)), (Hint::News, Hint::Known), "it is news once");
        assert_eq!((routes.primary(GroupId(1)), routes.majority(GroupId(1))), (Some(NodeId(2)), 1));
        assert_eq!(routes.primary(GroupId(2)), None);
        routes.is_silent(GroupId(1), NodeId(2));
        let again = routes.learn(Some(NodeId(2)), &serves, Time(0));
        assert_eq!(again, Hint::News, "it is there after all");
    }

    fn leads((epoch, view): (u64, u64), members: &[u64]) -> Leads {
        let view = ViewNumber { epoch: Epoch(epoch), view };
        let members = members.iter().copied().map(NodeId).collect();
        Leads { group: GroupId(1), members, view, serves: false }
    }

    #[test]
    fn who_is_no_member_is_believed_while_no_member_leads() {
        let group = GroupId(1);
        let mut routes = Routes::default();
        routes.found(group, &[1, 2, 3].map(NodeId).into());
        let claim = Leads { serves: true, ..leads((2, 0), &[7]) };
        let at = |ms| Time(0) + Span::millis(ms);
        let mut say = |node, leads: &Leads, ms| routes.learn(Some(NodeId(node)), leads, at(ms));
        assert_eq!(say(7, &leads((2, 0), &[7]), 0), Hint::Known, "it does not lead either");
        assert_eq!(say(7, &claim, 0), Hint::Claim, "the members are asked");
        assert_eq!(say(7, &claim, 400), Hint::Known, "they were just asked");
        assert_eq!(say(7, &claim, 2400), Hint::Claim);
        let there = Leads { serves: true, ..leads((1, 0), &[1, 2, 3]) };
        assert_eq!(say(1, &there, 2450), Hint::News, "one leads");
        assert_eq!(say(7, &claim, 2500), Hint::Claim, "they are asked anew");
        assert_eq!(say(7, &claim, 4900), Hint::Claim);
        let behind = leads((1, 0), &[1, 2, 3]);
        assert_eq!(say(2, &behind, 4950), Hint::Known, "it may have missed what the claim says");
        assert_eq!(say(7, &claim, 5000), Hint::News);
        assert_eq!(routes.leader(group), Some(NodeId(7)));
        assert!(routes.is_member(group, NodeId(7)) && routes.is_member(group, NodeId(1)));
        // This node's own replica may have missed that as well.
        assert_eq!(routes.learn(None, &leads((1, 0), &[1, 2, 3]), at(6000)), Hint::Known);
        assert_eq!(routes.leader(group), Some(NodeId(7)));
        // One that is heard of again knows better.
        let news = Leads { serves: true, ..leads((1, 4), &[1, 2, 3]) };
        assert_eq!(routes.learn(Some(NodeId(3)), &news, at(7000)), Hint::News);
        assert!(!routes.is_member(group, NodeId(7)));
        assert_ne!(routes.leader(group), Some(NodeId(7)));
        assert_eq!(routes.learn(Some(NodeId(7)), &claim, at(7000)), Hint::Claim);
        // What the replica here has heard needs nobody else.
        assert_eq!(routes.learn(None, &claim, at(7100)), Hint::News);
        assert_eq!(routes.leader(group), Some(NodeId(7)));
    }
}
