//! What a primary has in hand of buckets that move. All of it is lost with its view: targets ask
//! again, and sources tell again.

use super::places::bucket_of;
use super::said::Said;
use super::step::Step;
use crate::serializable::engine::{Action, Context};
use crate::serializable::execute::entry::Entry;
use crate::serializable::lane::Shape;
use crate::serializable::message::{Message, Refused};
use crate::serializable::number::Version;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::timer::Again;
use alloc::collections::BTreeMap;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// What is in hand.
#[derive(Debug, Default)]
pub struct Moving {
    /// Target: copies that are under way.
    pub pulls: BTreeMap<u8, Pull>,
    /// Source: buckets on which nothing is begun.
    pub closing: BTreeMap<u8, Closing>,
    /// Source: until when buckets are not closed again.
    pub open: BTreeMap<u8, Time>,
    /// Source: targets that are told that a bucket is theirs.
    pub told: BTreeMap<u8, Again>,
    /// Source: the latest copy of a bucket that was asked for, and by whom.
    pub seen: BTreeMap<u8, (GroupId, u64)>,
    /// Source: when buckets were last asked for by who has copied them.
    pub asked: BTreeMap<u8, BucketAsked>,
    /// How many groups should share the buckets, as far as is known here.
    pub wanted: Option<Shape>,
    /// Target: buckets of which keys are about to be dropped, and where the next ones begin.
    pub clearing: BTreeMap<u8, Option<Raw>>,
    /// Target: buckets that are not here, and are looked through for what is left of them.
    pub looks: BTreeMap<u8, Looked>,
}

impl Moving {
    /// Whether a bucket may be handed over to a group: it should be there, or nobody has said.
    pub fn may_have(&self, bucket: u8, group: GroupId) -> bool {
        self.wanted.is_none_or(|wanted| wanted.of_bucket(bucket) == group)
    }
}

/// How far a bucket was looked through. Nothing of it comes here but by a copy, of which the first
/// page ends this.
#[derive(Debug)]
pub struct Looked {
    /// No key before this one is left.
    pub upto: Raw,
    /// Who has the bucket, as far as is known, if the look goes on.
    pub wanted: Option<(u64, GroupId)>,
}

/// A pass of a copy.
#[derive(Debug)]
pub struct Pull {
    /// When the page is asked for again.
    pub again: Again,
    /// Where it begins.
    pub cursor: Raw,
    /// About how many bytes the pass has brought.
    pub brought: usize,
    /// What the first page of the pass has told.
    pub began: Option<Began>,
    /// The source's last purge of the bucket when the first pass began, as long as that is not
    /// logged.
    pub first: Option<u64>,
}

/// How the source was when a pass began.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    /// What it had executed.
    pub as_of: u64,
    /// How often the bucket was handed over until it had it.
    pub stay: u64,
    /// Its floor.
    pub floor: Version,
    /// Its last purge of the bucket.
    pub purged: u64,
    /// Whether the bucket was handed over: its version then.
    pub released: Option<u64>,
}

/// When a bucket was asked for, time and again.
#[derive(Clone, Copy, Debug)]
pub struct BucketAsked {
    /// The first time.
    pub first: Time,
    /// The last time.
    pub last: Time,
}

/// A bucket that is about to be handed over.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// To whom.
    pub to: GroupId,
    /// Its last purge that the target knows of.
    pub purged: u64,
    /// Since when nothing is begun on it.
    pub since: Time,
}

impl Primary {
    /// Puts an entry about a bucket into the log.
    pub(super) fn step(&mut self, step: Step, cx: &mut Context<'_>) {
        self.propose(Entry::Move(step), cx);
    }

    pub(super) fn say(&self, to: GroupId, bucket: u8, said: Said, cx: &mut Context<'_>) {
        let group = cx.state.group;
        cx.send(to, Message::Move { group, bucket, said });
    }

    /// Another group speaks of a bucket.
    pub(in crate::serializable) fn on_said(
        &mut self,
        bucket: u8,
        (group, said): (GroupId, Said),
        cx: &mut Context<'_>,
    ) {
        invariant!(group != cx.state.group, "a group speaks to others");
        match said {
            Said::Pull { id, since, cursor, stay, releases } => {
                self.on_pull(bucket, group, (id, since, cursor), (stay, releases), cx);
            }
            Said::Page { id, since, cursor, items, next, as_of, stay, floor, purged, released } => {
                let began = Began { as_of, stay, floor, purged, released };
                self.on_page(bucket, group, (id, since, cursor), (items, next, began), cx);
            }
            Said::Elsewhere { home, version } => {
                self.on_elsewhere(bucket, group, (version, home), cx);
            }
            Said::Stays { id } => self.on_stays(bucket, (group, id), cx),
            Said::Gone { version } => self.on_gone(bucket, group, version, cx),
            Said::Took { version } => self.on_took(bucket, group, version, cx),
        }
        invariant!(self.handed <= self.tail.len(), "only what there is was handed on");
    }

    /// The first group notes who founds another.
    pub(in crate::serializable) fn found(
        &mut self,
        group: GroupId,
        members: &[quorate_kernel::ids::NodeId],
        cx: &mut Context<'_>,
    ) {
        let is_noted = cx.state.head.moves.founded.contains_key(&group);
        if !is_noted && !self.tail.founds(group) {
            self.step(Step::Found { group, members: members.into() }, cx);
        }
    }

    /// An entry about buckets was executed.
    pub(in crate::serializable) fn has_stepped(&mut self, step: &Step, cx: &mut Context<'_>) {
        // What was looked through before a copy is not looked at again at its first page.
        let bucket = step.bucket().filter(|_| !matches!(step, Step::Arriving { .. }));
        if let Some(bucket) = bucket {
            self.moving.looks.remove(&bucket);
        }
        match step {
            Step::Arriving { bucket, .. } | Step::Passed { bucket, .. } => {
                self.begin_pass(*bucket, cx);
            }
            Step::Abandon { bucket, .. } => self.has_abandoned(*bucket, cx),
            Step::Take { bucket, .. } => self.has_taken(*bucket, cx),
            Step::Release { bucket, .. } => self.has_released(*bucket, cx),
            Step::Let { bucket, .. } => _ = self.moving.told.remove(bucket),
            Step::Clear { keys } => self.has_cleared(keys, cx),
            Step::Found { .. } | Step::Arrived { .. } => {}
        }
        if matches!(step, Step::Take { .. } | Step::Release { .. } | Step::Found { .. }) {
            cx.out.push(Action::Placed);
        }
    }

    /// The view begins: what was under way is asked and told again.
    pub(in crate::serializable) fn begin_moves(&mut self, cx: &mut Context<'_>) {
        let state = cx.state;
        for (bucket, moved) in &state.head.moves.buckets {
            if moved.arrival.is_some() {
                self.begin_pass(*bucket, cx);
            }
            if moved.is_kept {
                self.tell_gone(*bucket, cx);
            }
        }
    }

    /// Time has passed.
    pub(in crate::serializable) fn tick_moves(&mut self, cx: &mut Context<'_>) {
        self.tick_pulls(cx);
        self.tick_closing(cx);
        self.tick_told(cx);
        self.tick_looks(cx);
    }

    /// Why a key is not served, if so: its bucket is not here, or is about to be handed over.
    pub(in crate::serializable) fn misplaced<'k>(
        &self,
        keys: impl Iterator<Item = &'k Raw>,
        cx: &Context<'_>,
    ) -> Option<Refused> {
        let state = cx.state;
        if mutant!("txn_serves_after_release") {
            return None;
        }
        let is_away = |bucket: u8| !state.is_here(bucket) || self.tail.step_of(bucket).is_some();
        let bucket = keys.map(|key| bucket_of(key)).find(|bucket| is_away(*bucket))?;
        let moves = &state.head.moves;
        // A copy was given up to be made anew, and then the bucket was wanted elsewhere.
        let is_fetched = moves.arrival(bucket).is_some()
            || self.moving.may_have(bucket, state.group)
            || mutant!("txn_awaits_what_is_of_others");
        let is_coming = state.is_here(bucket) || (moves.is_awaited(bucket) && is_fetched);
        Some(if is_coming { Refused::Moving } else { Refused::Moved })
    }
}
