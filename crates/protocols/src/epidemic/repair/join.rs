//! Joining: how a node comes to have all of a range, and a place in the order.
//!
//! A node that starts, or that stood still, relays at once, as that needs no state. It listens for
//! TTL + 2 rounds: what was broadcast before it could be reached is then delivered at the others,
//! and in their snapshots; what was broadcast later it has itself. It takes over the snapshots of
//! two members, so that a hole of one is none of its own, and goes on behind the later one's last
//! event.
//!
//! A node whose slice has become larger does the same for what it has not, but keeps its place.
//!
//! When a whole cluster starts, nobody is ready. Who has waited long takes over what those have who
//! are not ready either. Who is alone in its slice has all that there is of it, and asks any
//! neighbour for a place in the order.

use super::behind::Heard;
use super::deferred::Deferred;
use super::donor::{Donor, taken};
use super::enough::{Around, Had};
use super::snapshot::time;
use super::told::SenderNotes;
use crate::epidemic::replica::range::Range;
use crate::epidemic::{Context, Epidemic, Level};
use crate::epto::{EventKey, LogicalTime};
use crate::gossip::cyclon::Peer;
use crate::slices::Changed;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// From how many members a snapshot is taken over.
pub const DONORS: usize = 2;
/// After how many TTLs a node that finds fewer members, or none that is ready, goes on without.
pub(super) const PATIENCE_TTLS: u64 = 3;
/// After how many rounds a node has heard how many others there are.
const COUNTED_ROUNDS: u64 = 12;

/// Whether a node has all that it shall have.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It has.
    Ready,
    /// It takes over snapshots.
    Joining(Box<Joining>),
}

/// A node that takes over snapshots.
#[derive(Clone, Debug, Default)]
pub struct Joining {
    /// Whether it has no place in the order either.
    pub(super) takes_place: bool,
    /// Snapshots must have come so far at least.
    pub(super) floor: Option<EventKey>,
    /// The round from which it may ask.
    pub(super) since: Option<u64>,
    /// How often what it takes over next was halved.
    pub(super) cuts: u32,
    /// For which range it asks.
    pub(super) range: Option<Range>,
    pub(super) donors: BTreeMap<NodeId, Donor>,
    /// In which round a page of a donor that is ready has come last.
    pub(super) heard_ready: Option<u64>,
    /// Since when it waits for somebody that had all of this range.
    pub(super) hope: Option<u64>,
    /// Whether nothing is left of the events behind what all had who have its range.
    pub(super) is_left_behind: bool,
    /// How far the furthest donor was that was ever heard of those that have the range: what it has
    /// purged is purged.
    pub(super) furthest: Option<EventKey>,
    /// How far the furthest of those was that were ready.
    pub(super) furthest_ready: Option<EventKey>,
    /// In which round one was heard that is as far.
    pub(super) furthest_heard: u64,
    /// How far the furthest of all was.
    pub(super) heard: Option<EventKey>,
    /// The donors that are ready and lag behind what this node has itself, with the rounds since
    /// when they have said so.
    pub(super) lagging: BTreeMap<NodeId, u64>,
    /// Whether anything was ever written, as donors show.
    pub(super) lives: bool,
    /// Whether something was dropped that the node had itself.
    pub(super) has_dropped: bool,
    /// The donors that are ready and below `floor`, with the rounds since when they have said so.
    pub(super) below: BTreeMap<NodeId, u64>,
    /// What others have said last of what they had.
    pub(super) told: BTreeMap<NodeId, SenderNotes>,
    /// What has had its turn since `floor`.
    pub(super) deferred: Deferred,
}

impl Standing {
    /// A node that begins to join.
    #[must_use]
    pub fn joining(takes_place: bool, floor: Option<EventKey>) -> Standing {
        Standing::Joining(Box::new(Joining { takes_place, floor, ..Joining::default() }))
    }
}

impl Joining {
    /// Begins anew; what was taken stays.
    pub(in crate::epidemic) fn restart(&mut self) {
        (self.range, self.since, self.heard_ready, self.hope) = (None, None, None, None);
        self.donors.clear();
        self.told.clear();
    }

    /// Which question a donor was asked last.
    #[cfg(test)]
    pub fn asked(&self, donor: NodeId) -> Option<u64> {
        self.donors.get(&donor).map(|donor| donor.number)
    }

    /// Whether neighbours have come so much further than all who have the range that these will
    /// drop what they have when this node has a place in the order: they were away, all of them.
    fn is_far(&self, own: Option<EventKey>, clock: LogicalTime, grace: u64) -> bool {
        let members = time(self.furthest.max(own));
        let is_far = time(self.heard).max(clock.0).saturating_sub(members) > grace;
        is_far && !mutant!("epidemic_leaves_behind_who_will_drop")
    }
}

impl Epidemic {
    /// The place in the order is lost: nothing is answered until another one is taken.
    pub(in crate::epidemic) fn lose_place(&mut self) {
        probe!("epidemic/place_lost");
        if mutant!("epidemic_resume_delivers") {
            return;
        }
        self.state.standing = Standing::joining(true, None);
        self.state.ready = None;
        self.state.holes.clear();
        self.state.doubt.join_anew();
    }

    /// This node was wrong to take a place: it joins anew.
    pub(in crate::epidemic) fn leave_place(&mut self, cx: &mut Context<'_>) {
        let mut actions = Vec::new();
        self.state.epto.leave_place(&mut actions);
        self.on_actions(actions, cx);
        invariant!(self.state.ready.is_none(), "nothing is answered without a place");
    }

    /// The number of slices has changed, and with it the range of this node.
    pub(in crate::epidemic) fn on_changed(&mut self, changed: Changed, before: Vec<NodeId>) {
        invariant!(changed.from != Some(changed.to), "a change is to another number");
        let range = self.state.range().expect("a node with a number of slices has a slice");
        self.take_back(&range);
        self.state.doubt.keep_within(&range);
        if let Standing::Joining(joining) = &mut self.state.standing
            && joining.takes_place
        {
            joining.restart();
            return;
        }
        let Some(ready) = self.state.ready else { return };
        if mutant!("epidemic_growth_assumed") {
            self.state.ready = Some(range);
            return;
        }
        self.give_up_found(before, self.state.last.map_or(LogicalTime(0), |last| last.time));
        let first = ready.first.max(range.first);
        let last = ready.last.min(range.last);
        self.state.ready = Some(Range { first, last });
        // Until it is taken over nothing is done there that has its turn.
        self.state.note_rest();
        self.state.standing = match range.without(&ready).is_empty() {
            true => Standing::Ready,
            false => Standing::joining(false, self.state.last),
        };
        invariant!(self.state.former.len() <= super::former::FORMER_MAX, "ranges are few");
    }

    /// A round has passed.
    pub(in crate::epidemic) fn on_join_round(&mut self, cx: &mut Context<'_>) {
        let Some(range) = self.state.range() else { return };
        let target = self.target();
        let (round, ttl) = (self.state.round, u64::from(self.state.epto.parameters().ttl));
        let may_resume = self.state.epto.may_resume() || mutant!("epidemic_join_at_once");
        let known = self.state.slices.members().iter().map(|peer| peer.who.node);
        let known: Vec<NodeId> = known.collect();
        // Who knows of others and hears none of them is cut off: it may lack all that they have.
        let is_other = |hint: &Peer| hint.who.node != self.state.me.node;
        let is_cut_off =
            self.state.hints.iter().any(is_other) && !mutant!("epidemic_cut_off_joins");
        let is_alone = self.state.cyclon.view().is_empty() && !is_cut_off;
        let (last, clock) = (self.state.last, self.state.epto.clock());
        let copies = usize::from(self.settings.acks);
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let has_own = last.is_some() && joining.takes_place && !joining.has_dropped;
        let is_far = joining.takes_place && joining.is_far(last, clock, self.settings.grace);
        let is_far = is_far && may_be_met(&known, self.settings.bounds.floor);
        // TTL must be that of the cluster, so it must have been heard how large that is.
        if joining.takes_place && (!may_resume || round < COUNTED_ROUNDS) {
            if joining.since.is_some() && !mutant!("epidemic_listens_anew_behind_old_pages") {
                // What was on its way before it listens again may be in none of what has come.
                joining.restart();
            }
            return;
        }
        let Some(target) = target else {
            self.state.standing = Standing::Ready;
            return;
        };
        if joining.range.is_some_and(|range| range != target) {
            joining.restart();
        }
        joining.range = Some(target);
        joining.hope.get_or_insert(round);
        joining.since.get_or_insert(round);
        let (patience, members) = (PATIENCE_TTLS * ttl, known);
        let had = self.had(target);
        let Standing::Joining(joining) = &self.state.standing else { return };
        // It may have been told of itself, too.
        let me = self.state.me.node;
        let told: Vec<_> =
            self.state.hints.iter().filter(|hint| hint.who.node != me).cloned().collect();
        let is_told_all = joining.has_heard(&told, &range);
        let around = Around {
            round,
            patience,
            members,
            is_alone,
            is_told_all,
            is_far,
            copies,
            has_own,
            had,
        };
        if joining.is_enough(&around) {
            return self.take_over(around.had, cx);
        }
        self.ask_donors(&around.had, round, cx);
    }

    /// What this node had itself of a range when it began to join. Who has a place had no more of
    /// it than what it gave up.
    fn had(&self, range: Range) -> Had {
        let (state, is_unordered) = (&self.state, self.settings.level == Level::None);
        let Standing::Joining(joining) = &state.standing else { panic!("it joins") };
        let lost = state.doubt.lost_within(&range).into_iter();
        let noted = match joining.takes_place {
            true => lost.map(taken).chain(state.behind.told(&range)).collect(),
            false => Vec::from([(range, Heard::Nothing)]),
        };
        // Without an order nothing tells it but what is here.
        let is_used = is_unordered && (!joining.takes_place || !state.store.is_empty());
        let is_used = is_used && !mutant!("epidemic_no_order_no_loss");
        let lives = joining.lives || state.last.is_some() || is_used;
        let last = state.last.filter(|_| joining.takes_place);
        Had { range, noted, lives, last, is_unordered }
    }
}

/// Whether members may be there that this node would harm: those that it knows, and others that
/// show up when slices are joined. Slices that may have one member are never joined.
fn may_be_met(known: &[NodeId], floor: u16) -> bool {
    !known.is_empty() || floor > 1 || mutant!("epidemic_waits_for_nobody")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epto::Horizon;

    /// Members that it does not know of would drop what they have when it takes that place.
    #[test]
    fn who_knows_no_member_takes_no_place_that_is_far() {
        let donors = BTreeMap::from([(NodeId(3), Donor::said(Horizon::default(), Vec::new()))]);
        let joining = Joining { since: Some(0), donors, ..Joining::default() };
        let may = |is_alone, is_far| {
            joining.is_enough(&Around { is_alone, is_far, ..Around::in_round(99) })
        };
        assert!(may(false, false) && !may(false, true));
        assert!(may(true, true), "nobody is there");
        assert!(may_be_met(&[], 2) && may_be_met(&[NodeId(3)], 1));
        assert!(!may_be_met(&[], 1), "nobody will ever be");
    }
}
