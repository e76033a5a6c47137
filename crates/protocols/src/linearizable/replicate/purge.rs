//! Removing tombstones. A deleted key leaves one, because a member that missed the delete still
//! holds the value; when every member of the view holds the tombstone it may go. The paper says
//! nothing of deletes.
//!
//! What could bring the value back is a write that was on its way before: a client's put that read
//! a timestamp below the tombstone's, or a get that imposes what it read. So the member that is
//! closest to the range leads all of them through two steps, each durable at every member before
//! the next begins:
//!
//! ```text
//! announce   generation 2k+1, floor F   new timestamps are above F, at and above every tombstone
//! wait       far longer than any operation may take
//! list       tombstones up to F, in generation 2k+1; those that all hold are kept in mind
//! enforce    generation 2k+2            a put is stored only if it saw generation 2k+1, what a get
//!                                       imposes only if it saw generation 2k+2
//! drop       what was kept in mind, wherever it is still the newest; repeated until all did
//! ```
//!
//! [`super::tombstones`] is the members' part. A put that saw 2k+1 is above F. A get that saw 2k+2
//! at its whole quorum read members that held the tombstone already. Both are refused otherwise:
//! the put's outcome is unknown to a client that has long given up, the get reads again. Clocks
//! decide only when a step is tried. A change of the view, or a member that does not answer, ends
//! the attempt; the next begins with another announce. Pages are dropped one after the other.
//!
//! Two members may take themselves for the closest and share a generation. A member lists only in
//! the generation that the leader announced: what all list to either leader, all held before they
//! came to 2k+2, whoever led them there. The lower of two floors under one number counts: the other
//! leader finds a member that does not hold its own, and gives up.

use super::replica::heads;
use crate::linearizable::group::Generation;
use crate::linearizable::keys::{first_of, next_interval, start_of};
use crate::linearizable::message::Message;
use crate::linearizable::page;
use crate::linearizable::page::PAGE_BYTES;
use crate::linearizable::record::{Head, Record};
use crate::linearizable::{Context, Linearizable, Mode};
use crate::placement;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{LIST_KEYS_MAX, PURGE_KEYS_MAX};
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::time::Time;
use quorate_kernel::view::ViewId;

/// Where an attempt stands.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// Looking for the highest counter of a tombstone here, a piece at a time.
    Surveying { from: Cursor, highest: u64 },
    /// Waiting for every member to be in this generation.
    Raising { goal: Generation, reached: BTreeSet<NodeId>, found: BTreeMap<Bytes, Head> },
    /// Waiting for operations from before the announcement to end.
    Waiting { goal: Generation, until: Time },
    /// Collecting one page of each member.
    Listing {
        goal: Generation,
        from: Cursor,
        pages: BTreeMap<NodeId, Listed>,
        found: BTreeMap<Bytes, Head>,
        /// Whether somebody lists one that others do not, who get it from each other.
        has_left: bool,
    },
    /// Waiting for every member to have deleted the first of these pages of tombstones.
    Dropping { goal: Generation, pages: VecDeque<Bytes>, reached: BTreeSet<NodeId> },
}

#[derive(Debug)]
struct Listed {
    next: Option<Cursor>,
    entries: BTreeMap<Bytes, Head>,
}

/// The removal of one group's tombstones, where this node leads it.
#[derive(Debug)]
pub(crate) struct Purge {
    stage: Stage,
    /// Whether a tombstone may be there.
    is_due: bool,
    /// When the last attempt began.
    began: Option<Time>,
    /// When it last came forward.
    moved: Time,
    /// The next attempt is announced above this generation, which is over or somebody else's.
    above: u64,
}

impl Default for Purge {
    fn default() -> Purge {
        // What an earlier start left is not known.
        Purge { stage: Stage::Idle, is_due: true, began: None, moved: Time(0), above: 0 }
    }
}

impl Purge {
    /// A tombstone was stored.
    pub fn note_tombstone(&mut self) {
        self.is_due = true;
    }

    /// What was begun ends, and is taken up again later.
    pub fn interrupt(&mut self) {
        self.is_due |= !matches!(self.stage, Stage::Idle);
        self.stage = Stage::Idle;
    }
}

impl Linearizable {
    /// Goes on with the removal in a group; returns whether it must be looked after soon.
    pub(crate) fn tend_purge(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        let pace = self.settings.pace;
        let is_atomic = self.settings.mode == Mode::Atomic;
        let ring = self.volatile.ring.clone();
        let Some(group) = self.group_mut(view) else { return false };
        let proposer = ring.and_then(|ring| placement::proposer(&group.view, &ring));
        let is_leader = proposer == Some(cx.me.node);
        if !is_leader || !group.is_whole() || !is_atomic {
            group.purge.interrupt();
            return false;
        }
        match &group.purge.stage {
            Stage::Idle => {
                let began = *group.purge.began.get_or_insert(cx.now);
                if group.purge.is_due && cx.now >= began + pace.purge {
                    group.purge.began = Some(cx.now);
                    group.purge.moved = cx.now;
                    group.purge.is_due = false;
                    let from = start_of(&group.view.range);
                    group.purge.stage = Stage::Surveying { from, highest: 0 };
                }
            }
            Stage::Surveying { .. } => self.survey(view, cx),
            Stage::Waiting { goal, until } if cx.now >= *until => {
                let goal = *goal;
                group.purge.moved = cx.now;
                let from = start_of(&group.view.range);
                let (pages, found) = (BTreeMap::new(), BTreeMap::new());
                let has_left = false;
                group.purge.stage = Stage::Listing { goal, from, pages, found, has_left };
                self.ask_purge(view, cx);
            }
            Stage::Waiting { .. } => {}
            Stage::Raising { .. } | Stage::Listing { .. } | Stage::Dropping { .. } => {
                if cx.now >= group.purge.moved + pace.purge {
                    // Somebody does not answer: try again another time.
                    group.purge.interrupt();
                } else {
                    self.ask_purge(view, cx);
                }
            }
        }
        false
    }

    /// Looks through one piece of what is here for tombstones; after the last one the attempt
    /// begins.
    fn survey(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Surveying { from, highest } = &group.purge.stage else { return };
        let (position, highest) = (from.position, *highest);
        let (page, next) = heads(group, from, LIST_KEYS_MAX, |head| !head.live, cx);
        let counters = page::entries(page).map(|(_, record)| record.head().ts.n);
        let highest = counters.fold(highest, u64::max);
        match next.or_else(|| next_interval(&group.view.range, position)) {
            Some(from) => group.purge.stage = Stage::Surveying { from, highest },
            None => {
                group.purge.stage = Stage::Idle;
                if highest > 0 {
                    self.announce(view, highest, cx);
                }
            }
        }
    }

    /// Begins an attempt: the floor is the highest counter that any tombstone here has.
    ///
    /// An attempt that was given up before it enforced anything is taken up again as it was: to
    /// announce another generation would refuse the puts of clients that do not know the one
    /// before yet.
    fn announce(&mut self, view: ViewId, highest: u64, cx: &mut Context<'_>) {
        let Some(group) = self.group(view) else { return };
        let (before, above) = (group.record.generation, group.purge.above);
        let goal = if before.number % 2 == 1 && above < before.number {
            before
        } else {
            let number = (before.number.max(above) + 1) | 1;
            Generation { number, floor: before.floor.max(highest) }
        };
        if let Some(group) = self.group_mut(view) {
            group.purge.is_due = highest > goal.floor;
        }
        self.raise(view, goal, BTreeMap::new(), cx);
    }

    fn raise(
        &mut self,
        view: ViewId,
        goal: Generation,
        found: BTreeMap<Bytes, Head>,
        cx: &mut Context<'_>,
    ) {
        if let Some(group) = self.group_mut(view) {
            group.purge.moved = cx.now;
            group.purge.stage = Stage::Raising { goal, reached: BTreeSet::new(), found };
        }
        self.ask_purge(view, cx);
    }

    /// Asks the present stage's question of all members, or of those that have not answered it.
    fn ask_purge(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group(view) else { return };
        let members = group.view.group();
        // Questions promise nothing.
        match &group.purge.stage {
            Stage::Raising { goal, .. } => {
                cx.fx.send_early(members, Message::FloorA { view, generation: *goal });
            }
            Stage::Listing { goal, from, .. } => {
                let (generation, from) = (goal.number, from.clone());
                cx.fx.send_early(members, Message::TombstonesA { view, generation, from });
            }
            Stage::Dropping { goal, pages, reached } => {
                let Some(page) = pages.front() else { return };
                // Every member was in the generation before this is said, as often as it is.
                for node in members.iter().filter(|node| !reached.contains(node)) {
                    let (generation, page) = (*goal, page.clone());
                    cx.fx.send_early(*node, Message::DropA { view, generation, page });
                }
            }
            Stage::Idle | Stage::Surveying { .. } | Stage::Waiting { .. } => {}
        }
    }

    /// A member is in a generation.
    pub(crate) fn on_floor_reply(
        &mut self,
        from: Incarnation,
        view: ViewId,
        generation: Generation,
        cx: &mut Context<'_>,
    ) {
        let until = cx.now + self.settings.pace.purge;
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Raising { goal, reached, .. } = &mut group.purge.stage else { return };
        if group.view.id != view || generation.number < goal.number {
            return;
        }
        if generation.number > goal.number || generation.floor < goal.floor {
            probe!("linearizable/purge_led_by_two");
            let above = generation.number;
            group.purge = Purge { above, began: group.purge.began, ..Purge::default() };
            return;
        }
        reached.insert(from.node);
        if !group.view.members().iter().all(|node| reached.contains(node)) {
            return;
        }
        let goal = *goal;
        let Stage::Raising { found, .. } = core::mem::take(&mut group.purge.stage) else { return };
        if goal.number % 2 == 1 {
            group.purge.stage = Stage::Waiting { goal, until };
        } else {
            self.drop_everywhere(view, goal, &found, cx);
        }
    }

    /// A member listed tombstones.
    pub(crate) fn on_tombstones_reply(
        &mut self,
        member: Incarnation,
        (view, generation): (ViewId, u64),
        (begin, next): (Cursor, Option<Cursor>),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Listing { goal, from, pages, found, has_left } = &mut group.purge.stage else {
            return;
        };
        if group.view.id != view || generation != goal.number || begin != *from {
            return;
        }
        let entries = page::entries(entries).map(|(key, record)| (key, record.head())).collect();
        pages.insert(member.node, Listed { next, entries });
        let members = group.view.members();
        if !members.iter().all(|node| pages.contains_key(node)) {
            return;
        }
        // What all of them list, up to where the shortest page ends.
        let end = pages.values().filter_map(|page| page.next.as_ref()).min().cloned();
        let mut pages = core::mem::take(pages).into_values();
        let Some(first) = pages.next() else { return };
        let rest: Vec<Listed> = pages.collect();
        let before = end.as_ref().map(first_of);
        let is_before = |key: &Bytes| before.as_ref().is_none_or(|before| key < before);
        let count = |page: &Listed| page.entries.keys().filter(|key| is_before(key)).count();
        let listed = rest.iter().map(count).fold(count(&first), usize::max);
        let known = found.len();
        let is_everywhere = |(key, head): &(Bytes, Head)| {
            is_before(key) && rest.iter().all(|page| page.entries.get(key) == Some(head))
        };
        found.extend(first.entries.into_iter().filter(is_everywhere));
        *has_left |= found.len() - known < listed;
        let after = end.or_else(|| next_interval(&group.view.range, begin.position));
        match after {
            Some(after) if found.len() < PURGE_KEYS_MAX => {
                // The next page is asked for when the group is tended again: clients go first.
                *from = after;
                group.purge.moved = cx.now;
            }
            _ => {
                let (goal, found) = (*goal, core::mem::take(found));
                // What is left is looked for again when members have compared what they hold.
                let is_due = after.is_some() || *has_left;
                self.enforce(view, goal, found, is_due, cx);
            }
        }
    }

    fn enforce(
        &mut self,
        view: ViewId,
        announced: Generation,
        found: BTreeMap<Bytes, Head>,
        is_due: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        group.purge.is_due |= is_due;
        let Generation { number, floor } = announced;
        if found.is_empty() {
            group.purge.stage = Stage::Idle;
            group.purge.above = number;
            return;
        }
        self.raise(view, Generation { number: number + 1, floor }, found, cx);
    }

    fn drop_everywhere(
        &mut self,
        view: ViewId,
        goal: Generation,
        found: &BTreeMap<Bytes, Head>,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        assert!(goal.number.is_multiple_of(2), "only an enforced generation lets tombstones go");
        let (mut pages, mut page) = (VecDeque::new(), BytesMut::new());
        for (key, head) in found {
            page::push(&mut page, key, Record::of_head(*head).bytes());
            if page.len() >= PAGE_BYTES {
                pages.push_back(core::mem::take(&mut page).freeze());
            }
        }
        if !page.is_empty() {
            pages.push_back(page.freeze());
        }
        group.purge.moved = cx.now;
        group.purge.stage = Stage::Dropping { goal, pages, reached: BTreeSet::new() };
        self.ask_purge(view, cx);
    }

    /// A member has deleted the page that begins with this key: when all have, the next one is
    /// told.
    pub(crate) fn on_drop_reply(
        &mut self,
        from: Incarnation,
        (view, generation): (ViewId, Generation),
        first: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Dropping { goal, pages, reached } = &mut group.purge.stage else { return };
        // An answer to an earlier page that was told twice says nothing of this one.
        let is_present = pages.front().and_then(page::first_key).is_some_and(|key| key == *first);
        if group.view.id != view || generation != *goal || !is_present {
            return;
        }
        reached.insert(from.node);
        group.purge.moved = cx.now;
        if !group.view.members().iter().all(|node| reached.contains(node)) {
            return;
        }
        pages.pop_front();
        reached.clear();
        match pages.is_empty() {
            true => group.purge.stage = Stage::Idle,
            false => self.ask_purge(view, cx),
        }
    }
}
