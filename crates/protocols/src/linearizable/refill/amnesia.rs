//! Members that forgot what they had acknowledged, and groups in which nobody is left to ask.
//!
//! A member that forgot refills from so many others that they meet every majority it was part of.
//! Each source first notes, durably, that the asker forgot in this start; from then on
//! acknowledgements of the asker's earlier starts do not count ([`crate::quorum`]).
//!
//! # When nobody is left to ask
//! Of those that a node waits for, some may wait themselves: they forgot too, or are newcomers that
//! have not heard everything. Each says whom it waits for, and the asker asks those as well. So it
//! comes to know a set of nodes of which none waits for anybody outside. If all of them lacked data
//! at one moment, they would wait for each other for ever, and no complete copy is left: everything
//! was lost, as `memory` promises for a restart of all hosts at once.
//!
//! One round of answers cannot show that, because members forget and refill one after the other; so
//! a second round asks each again. A node that lacked data in both answers, in one start, lacked it
//! at the moment between the rounds, and so did all. What these incarnations hold is then all there
//! is, and they count as sources for each other although they lack data. The one who finds this out
//! hears **all** of them, those who have left the group too. In a group whose members have all
//! forgot, and that no newcomer waits for, it hears as many as in any refill, and beyond those each
//! that may hold something ([`super::loss`]). In either case each of those heard knows from then on
//! that the asker forgot. Who is complete again tells the others which
//! incarnations it concerned: they could not find it out any more. A newcomer that none of them had
//! waited for goes on too, if each that it waits for is complete or one of those, and hears all.
//!
//! As long as one of the set is complete, a `memory` keyspace waits: what the others alone had
//! acknowledged, however long ago, would be lost unseen. So it is with one that has left the view
//! before all have gathered ([`super::gather`]): as long as somebody could hear it, nothing is
//! given up, or what it holds would come back later beside what was acknowledged meanwhile.
//!
//! One that is restarted once more after a loss was found out, before it was told, waits too: it
//! and a third may have acknowledged something since that the first to go on has not. They wait for
//! it, and for each other, until it has forgotten too.
//!
//! A host that was removed from the cluster is gone for good, and with it what it alone held:
//! whoever removed it said so. If one of the set is gone, the others do not wait for it, nor for
//! what only it could have completed. When each of them is complete, or lacked data at the moment
//! between the rounds, the asker goes on with what all of them together hold, at any durability;
//! beside one that is complete only if nobody but hosts that are gone is missing. What is lost so
//! was acknowledged by nobody but hosts that are gone, or forgot it.
//!
//! What was read before a loss, or asked for, or copied, comes not back after it: see
//! [`super::epoch`].
//!
//! # What a `periodic` member still holds
//! A loss of power takes the last batches of a log and leaves those before. So a `periodic` member
//! that forgot has on its disk all that it had acknowledged until shortly before, and while some of
//! the set are complete the others need not wait for ever. The same two rounds are held; the asker
//! may go on if each of the set is complete, or lacked data at the moment between the rounds, and
//! hears all of them. One whose memberships are over, and that is no source for the asker, says
//! that it lacks data too, and waits for nobody: it has heard all others, if it lost anything, and
//! lists what it holds. Then of what was acknowledged only this is lost: writes that each member of
//! a majority had acknowledged, and lost from its disk.
//! - *A write that one of them still holds*, complete or not, is heard from it. One that this
//!   member takes later does not count together with an acknowledgement of the asker's earlier
//!   start, for this member knows by then that the asker forgot.
//! - *A write that all of them lost*: each lost it with its power within the interval after it had
//!   acknowledged it, and had not refilled when the last of them did. For who refills hears all the
//!   others, and would have heard it from those that still had it. So they were a majority that
//!   lacked power or data at one moment, and the write was acknowledged at most the interval before
//!   that moment. That is what `periodic` promises: one machine takes nothing, as it is no
//!   majority, and all at once take the last interval.

use super::loss::complete;
use super::told::{Reach, Source};
use super::transfer::{Quorum, Transfer};
use crate::linearizable::group::Group;
use crate::linearizable::{Context, Linearizable};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::ring::{Ring, RingHost, Standing as HostStanding};
use quorate_kernel::view::ViewId;

impl Transfer {
    /// Takes in that a source lacks data too, and whom it waits for.
    fn note_lacking(&mut self, from: Incarnation, round: u64, awaits: &[NodeId], me: NodeId) {
        let confirming = self.confirming;
        let Some(source) = self.source(from) else { return };
        (source.is_whole, source.has_gathered) = (false, false);
        let mut is_news = source.lacks != Some(from.start);
        source.lacks = Some(from.start);
        let late = u64::from(mutant!("confirmed_one_round_early"));
        source.confirmed |= !is_news && confirming.is_some_and(|first| round + late >= first);
        for node in awaits.iter().filter(|node| **node != me) {
            is_news |= self.add_source(*node);
        }
        if is_news {
            self.ask_again();
        }
    }

    /// What was said before must be asked again: somebody says something new.
    pub fn ask_again(&mut self) {
        self.confirming = None;
        self.sources.iter_mut().for_each(|source| source.confirmed = false);
    }

    /// Takes in that a source's data is complete; returns whether that is news.
    pub fn note_whole(&mut self, from: Incarnation) -> bool {
        let gathered = self.gathered.clone();
        let Some(source) = self.source(from) else { return false };
        if source.lacks.take().is_some() {
            // What it listed before was not all.
            source.listed.clear();
            (source.next, source.asked, source.confirmed) = (gathered, None, false);
            source.whole_from = None;
        }
        !core::mem::replace(&mut source.is_whole, true)
    }

    /// The source that says something of itself, unless a later start of it has spoken.
    pub fn source(&mut self, from: Incarnation) -> Option<&mut Source> {
        let is_meant = |source: &&mut Source| {
            source.node == from.node && source.lacks.is_none_or(|start| start <= from.start)
        };
        self.sources.iter_mut().find(is_meant)
    }

    /// Whether a source's data is complete, as it said last.
    pub fn is_whole(&self, node: NodeId) -> bool {
        self.sources.iter().any(|source| source.node == node && source.is_whole)
    }

    /// Whether everybody has said how it stands, and too few are complete.
    fn is_stranded(&self) -> bool {
        // Beside one that is complete the others go on only if nobody but hosts that are gone is
        // missing.
        let compares = self.lasting || self.is_met(|quorum| self.gone(quorum));
        let has_said = |source: &Source| {
            source.is_gone || source.lacks.is_some() || source.is_whole && compares
        };
        self.sources.iter().all(has_said) && !self.is_met(|_| 0)
    }

    /// Whether so many are complete that they will be enough, with so many others of each quorum.
    fn is_met(&self, others: impl Fn(&Quorum) -> usize) -> bool {
        let left = self.or_whole.as_ref().filter(|_| !self.is_stood_for());
        let mut quorums = self.quorums.iter().chain(left);
        quorums.all(|quorum| self.complete(quorum) + others(quorum) >= quorum.1)
    }

    /// Whether one that has gathered stands for those that have left.
    fn is_stood_for(&self) -> bool {
        self.sources.iter().any(|source| source.has_gathered && !source.is_gone)
    }

    /// How many of a quorum are complete, and can be heard.
    fn complete(&self, (nodes, _): &Quorum) -> usize {
        let here = self.sources.iter().filter(|source| nodes.contains(&source.node));
        here.filter(|source| source.is_whole && !source.is_gone).count()
    }

    /// How many of a quorum will never be heard.
    fn gone(&self, (nodes, _): &Quorum) -> usize {
        self.sources.iter().filter(|it| it.is_gone && nodes.contains(&it.node)).count()
    }

    /// Those whose data is not complete as far as is known, if that is waited for.
    pub fn awaited(&self) -> impl Iterator<Item = NodeId> {
        let is_awaited = |source: &&Source| !source.is_whole && !self.hears_all;
        self.reachable().filter(is_awaited).map(|source| source.node)
    }

    /// Whether so many can be heard as are needed.
    fn can_be_met(&self) -> bool {
        let can_meet = |quorum: &Quorum| quorum.0.len() - self.gone(quorum) >= quorum.1;
        self.quorums.iter().chain(&self.or_whole).all(can_meet)
    }

    /// Those that will be heard.
    pub fn reachable(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| !source.is_gone)
    }

    /// How far all have listed, if that is enough.
    pub fn heard_of_all(&self) -> Option<Reach<'_>> {
        let all = self.reachable().map(|source| Reach::of(source.next.as_ref())).min();
        self.hears_all.then(|| all.unwrap_or(Reach::Everything))
    }

    /// Whether everybody is complete, or of the incarnations that lacked data when this node was
    /// not waited for, and not all are complete.
    fn waits_for_lost(&self) -> bool {
        let is_lost = |source: &Source| {
            let who = source.lacks.map(|start| Incarnation { node: source.node, start });
            who.is_some_and(|who| self.told.contains(&who))
        };
        let lacks = self.reachable().any(|source| !source.is_whole);
        !self.told.is_empty()
            && lacks
            && self.reachable().all(|source| source.is_whole || is_lost(source))
    }

    /// Those that can be heard, as they were at the moment before the confirming round
    /// ([`super::loss`]), if all that lacked data then have confirmed it.
    fn last_left(&self) -> Option<Vec<Incarnation>> {
        let confirmed = |source: &Source| {
            let start = source.lacks.filter(|_| source.confirmed)?;
            Some(Incarnation { node: source.node, start })
        };
        let stood = |source: &Source| match source.is_whole {
            true => Some(complete(source.node)),
            false => confirmed(source),
        };
        self.reachable().map(stood).collect()
    }

    /// From now on these count as sources. All that are asked are to be heard, unless nobody but
    /// members was ever a source.
    pub fn hear_last_left(&mut self, lost: &[Incarnation], me: NodeId) {
        for who in lost.iter().filter(|who| who.node != me) {
            self.add_source(who.node);
        }
        // One that has left the view is heard as [`super::gather`] says.
        let is_named = |source: &Source| {
            let mut quorums = self.quorums.iter().chain(&self.or_whole);
            quorums.any(|(nodes, _)| nodes.contains(&source.node))
        };
        let is_of_members = self.sources.iter().all(is_named) && self.can_be_met();
        self.hears_all |= !(self.is_member_refill && is_of_members);
        self.lost = lost.to_vec();
    }

    /// Takes in which hosts have left the cluster for good.
    fn note_gone(&mut self, ring: &Ring) {
        let has_left = |host: &RingHost| host.standing == HostStanding::Left;
        for source in &mut self.sources {
            source.is_gone |= ring.host(source.node).is_some_and(has_left);
        }
    }
}

impl Linearizable {
    /// A source told in which incarnations everything was lost.
    pub(crate) fn on_told_of_loss(
        &mut self,
        view: ViewId,
        lost: Vec<Incarnation>,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view).filter(|group| group.lacks_data()) else { return };
        // One that a member knows of from before, or it would take the place of a later one, and be
        // taken for news, again and again.
        let is_outdated = |who: &Incarnation| {
            let mut known = group.record.lost.iter();
            let is_later = |known: &Incarnation| Start(0) < who.start && who.start < known.start;
            known.any(|known| known.node == who.node && is_later(known))
        };
        let is_known = group.knows_loss(&lost) || lost.iter().any(is_outdated);
        let Some(transfer) = group.transfer.as_mut().filter(|transfer| !transfer.lasting) else {
            return;
        };
        if is_known {
            return;
        }
        if lost.contains(&cx.me) {
            probe!("linearizable/told_of_loss");
            self.note_loss(view, lost, false, cx);
        } else if lost.iter().all(|who| who.node != cx.me.node) {
            transfer.told = lost;
            self.compare_words(view, cx);
        }
    }

    /// A source answered in a round that it lacks data.
    pub(crate) fn on_source_lacks(
        &mut self,
        from: Incarnation,
        (round, since): (u64, ViewId),
        (awaits, epoch): (&[NodeId], u64),
        cx: &mut Context<'_>,
    ) {
        let me = cx.me.node;
        let Some((view, _)) = self.transfer_of(since) else { return };
        let before = self.progress(view);
        // A word of a higher epoch is none of this one: two losses would have one number. Today
        // nobody goes on in an epoch without the list of each who is in it, so that this node comes
        // to it before; but that is the affair of others.
        self.come_to_epoch(view, epoch, cx);
        invariant!(before.is_behind(self.progress(view)), "no epoch goes back");
        let newest = self.volatile.round;
        let may_hear = |group: &&mut Group| group.lacks_data() && group.record.epoch == epoch;
        if let Some(group) = self.group_mut(view).filter(may_hear)
            && let Some(transfer) = group.transfer.as_mut().filter(|t| t.first_round <= round)
        {
            invariant!(transfer.round <= newest, "rounds come from one counter");
            transfer.note_lacking(from, round, awaits, me);
            self.compare_words(view, cx);
            // There may be more to be asked.
            self.ask_lists(view, cx);
        }
    }

    /// Looks whether what sources have said of themselves leaves nobody to wait for.
    pub(crate) fn compare_words(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let (ring, next) = (self.volatile.ring.clone(), self.volatile.round + 1);
        let Some(group) = self.group_mut(view).filter(|group| group.lacks_data()) else { return };
        let Some(transfer) = &mut group.transfer else { return };
        ring.iter().for_each(|ring| transfer.note_gone(ring));
        if transfer.waits_for_lost() {
            probe!("linearizable/came_after_loss");
            let mut lost = core::mem::take(&mut transfer.told);
            lost.push(cx.me);
            return self.note_loss(view, lost, false, cx);
        }
        if !transfer.is_stranded() {
            return;
        }
        if transfer.confirming.is_none() {
            (transfer.round, transfer.confirming) = (next, Some(next));
            self.volatile.round = next;
            return self.ask_all_anew(view, cx);
        }
        let Some(mut lost) = transfer.last_left() else { return };
        lost.push(cx.me);
        // A host may be gone for good since that was known.
        let is_short = !transfer.hears_all && !transfer.can_be_met();
        if is_short || !group.knows_loss(&lost) {
            probe!("linearizable/everything_lost");
            self.note_loss(view, lost, true, cx);
        }
    }

    /// Nobody was left to wait for, in these incarnations. It was found out here, or told by
    /// somebody whose epoch is this node's.
    fn note_loss(
        &mut self,
        view: ViewId,
        lost: Vec<Incarnation>,
        is_found: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        if let Some(transfer) = &mut group.transfer {
            transfer.hear_last_left(&lost, cx.me.node);
        }
        group.record.lost = lost;
        group.record.epoch += u64::from(is_found);
        Self::persist(group, cx);
        self.begin_transfer_anew(view, cx);
    }
}
