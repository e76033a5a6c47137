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
//! [`super::tombstones`] is the members' part; [`super::purge_answers`] takes what they answer. A
//! put that saw 2k+1 is above F. A get that saw 2k+2 at its whole quorum read members that held the
//! tombstone already. Both are refused otherwise: the put's outcome is unknown to a client that has
//! long given up, the get reads again. Clocks decide only when a step is tried. A change of the
//! view, or a member that does not answer, ends the attempt; the next begins with another announce.
//! Pages are dropped one after the other.
//!
//! Two members may take themselves for the closest and share a generation. A member lists only in
//! the generation that the leader announced: what all list to either leader, all held before they
//! came to 2k+2, whoever led them there. The lower of two floors under one number counts: the other
//! leader finds a member that does not hold its own, and gives up.

use super::replica::heads;
use crate::linearizable::group::Generation;
use crate::linearizable::keys::{next_interval, start_of};
use crate::linearizable::message::Message;
use crate::linearizable::record::Head;
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable, Mode};
use crate::placement;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Cursor;
use quorate_kernel::time::Time;
use quorate_kernel::view::ViewId;

/// Where an attempt stands.
#[derive(Debug, Default)]
pub(super) enum Stage {
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
pub(super) struct Listed {
    pub next: Option<Cursor>,
    pub entries: BTreeMap<Bytes, Head>,
}

/// The removal of one group's tombstones, where this node leads it.
#[derive(Debug)]
pub(crate) struct Purge {
    pub(super) stage: Stage,
    /// Whether a tombstone may be there.
    pub(super) is_due: bool,
    /// When the last attempt began.
    pub(super) began: Option<Time>,
    /// When it last came forward.
    pub(super) moved: Time,
    /// The next attempt is announced above this generation, which is over or somebody else's.
    pub(super) above: u64,
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
    pub(crate) fn maintain_purge(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
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
        let list_keys = self.settings.pace.list_keys;
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Surveying { from, highest } = &group.purge.stage else { return };
        let (token, highest) = (from.token, *highest);
        let (page, next) = heads(group, from, list_keys, |head| !head.live, cx);
        let counters = page::entries(page).map(|(_, record)| record.head().ts.n);
        let highest = counters.fold(highest, u64::max);
        match next.or_else(|| next_interval(&group.view.range, token)) {
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

    pub(super) fn raise(
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
    pub(super) fn ask_purge(&mut self, view: ViewId, cx: &mut Context<'_>) {
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
}
