//! How a node whose data is incomplete gets it from others before its answers count.
//!
//! Three reasons, one transfer:
//! - **It is new in a view.** It hears from a majority of the members of the view before, each of
//!   them after it has left that view (CATS §4.1), so that nothing can still complete there unseen.
//! - **It forgot** what it had acknowledged (a `memory` lane after a restart, a `periodic` one
//!   after a power loss). It refills from so many others that they meet every majority it was part
//!   of ([`super::amnesia`]).
//! - **It learns**: it copies ahead of a view that will have it, so that little is left to do then.
//!
//! The data moves in windows of positions, in ring order. Sources list keys and timestamps (CATS
//! §5, Network Data Transfer); when a quorum has listed a window, the newest records that are not
//! here yet are fetched from their holders, in parallel; then comes the next window. So memory is
//! bounded, and what was stored is not fetched again after a restart. A source that stops answering
//! is done without: the window is listed anew, by whoever answers.

use super::group::Group;
use super::keys::{position_of, segments};
use super::message::Message;
use super::page;
use super::record::Head;
use super::timer::Timer;
use super::{Context, Linearizable};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::limits::TRANSFER_LISTED_MAX;
use quorate_kernel::probe;
use quorate_kernel::time::Span;
use quorate_kernel::view::{Range, ViewId};

/// After this without progress the questions are repeated.
pub(super) const REPEAT: Span = Span::millis(200);
/// After so many repetitions without progress the window is begun anew.
const STALLS_MAX: u32 = 4;
/// The most keys asked for in one fetch.
const FETCH_KEYS_MAX: usize = 512;

/// Each of these must be met: so many of those nodes have listed everything.
pub(super) type Quorums = Vec<(Vec<NodeId>, usize)>;

/// What one source has told.
#[derive(Debug)]
pub(super) struct Source {
    pub node: NodeId,
    /// What it listed from the window on, not used yet.
    listed: VecDeque<(Bytes, Head)>,
    /// The position to list next; `None` when the interval is listed.
    next: Option<u64>,
    /// The position that it was last asked to list from.
    asked: Option<u64>,
    /// Whether a fetch is under way at it.
    fetching: bool,
    /// The start in which it said that it forgot too.
    pub forgot: Option<Start>,
    /// Whether it said so again, in the same start, in the confirming round.
    pub confirmed: bool,
}

/// A record to be fetched.
#[derive(Debug)]
struct Pull {
    head: Head,
    holders: Vec<NodeId>,
    /// Whom it is asked of at the moment.
    asked: Option<NodeId>,
}

/// A transfer under way.
#[derive(Debug)]
pub(super) struct Transfer {
    pub round: u64,
    /// What sources must have installed before what they say counts.
    pub since: ViewId,
    /// Whether the asker forgot.
    pub forgot: bool,
    /// The first round that began after every source had said that it forgot.
    pub confirming: Option<u64>,
    pub sources: Vec<Source>,
    quorums: Quorums,
    /// The intervals of the range that are not begun.
    intervals: VecDeque<(u64, u64)>,
    /// The first and last position of the interval under way; `None` when all is moved.
    interval: Option<(u64, u64)>,
    /// Everything of the interval before this position is here.
    window: u64,
    /// Where the window whose records are being fetched ends; `None` inside at the interval's end.
    window_end: Option<Option<u64>>,
    pulls: BTreeMap<Bytes, Pull>,
    has_progressed: bool,
    stalls: u32,
}

impl Transfer {
    pub fn new(
        round: u64,
        since: ViewId,
        range: &Range,
        quorums: Quorums,
        forgot: bool,
    ) -> Transfer {
        let nodes: BTreeSet<NodeId> =
            quorums.iter().flat_map(|(nodes, _)| nodes).copied().collect();
        let source = |node| Source {
            node,
            listed: VecDeque::new(),
            next: Some(0),
            asked: None,
            fetching: false,
            forgot: None,
            confirmed: false,
        };
        let mut transfer = Transfer {
            round,
            since,
            forgot,
            confirming: None,
            sources: nodes.into_iter().map(source).collect(),
            quorums,
            intervals: segments(range).collect(),
            interval: None,
            window: 0,
            window_end: None,
            pulls: BTreeMap::new(),
            has_progressed: true,
            stalls: 0,
        };
        transfer.next_interval();
        transfer
    }

    fn next_interval(&mut self) {
        self.interval = self.intervals.pop_front();
        if let Some((first, _)) = self.interval {
            self.begin_window(first);
        }
    }

    /// Lists anew from a position on.
    fn begin_window(&mut self, from: u64) {
        self.window = from;
        self.window_end = None;
        self.pulls.clear();
        for source in &mut self.sources {
            source.listed.clear();
            source.next = Some(from);
            source.asked = None;
            source.fetching = false;
        }
    }

    /// Whether everything is here.
    pub fn is_done(&self) -> bool {
        // A group without others has no source to wait for.
        self.interval.is_none() || self.quorums.iter().all(|(_, needed)| *needed == 0)
    }

    /// About how much of the range is here, in per cent.
    pub fn percent(&self, range: &Range) -> u64 {
        let width = |(first, last): (u64, u64)| u128::from(last - first) + 1;
        let all: u128 = segments(range).map(width).sum();
        let waiting: u128 = self.intervals.iter().copied().map(width).sum();
        let left = self.interval.map_or(0, |(_, last)| width((self.window.min(last), last)));
        u64::try_from((all - (waiting + left).min(all)) * 100 / all).unwrap_or(100)
    }

    /// How far a quorum has listed: `Some(None)` is to the end of the interval, `None` not beyond
    /// the window.
    fn reach(&self) -> Option<Option<u64>> {
        // The end of the interval counts as above every position.
        let upto = |node: &NodeId| {
            let source = self.sources.iter().find(|source| source.node == *node);
            source.map_or(u128::from(self.window), |s| s.next.map_or(u128::MAX, u128::from))
        };
        let reach = |(nodes, needed): &(Vec<NodeId>, usize)| {
            let mut reached: Vec<u128> = nodes.iter().map(upto).collect();
            reached.sort_unstable_by(|a, b| b.cmp(a));
            needed.checked_sub(1).map_or(u128::MAX, |nth| reached.get(nth).copied().unwrap_or(0))
        };
        let reach = self.quorums.iter().map(reach).min().unwrap_or(u128::MAX);
        match u64::try_from(reach) {
            Err(_) => Some(None),
            Ok(reach) => (reach > self.window).then_some(Some(reach)),
        }
    }

    /// Takes in what a source listed; returns whether that was what it was asked for.
    pub fn list(&mut self, from: NodeId, begin: u64, next: Option<u64>, entries: Bytes) -> bool {
        let Some((_, last)) = self.interval else { return false };
        let Some(source) = self.sources.iter_mut().find(|source| source.node == from) else {
            return false;
        };
        if source.next != Some(begin) {
            return false;
        }
        // Its range may be wider than the one that is moved.
        source.next = next.filter(|next| *next <= last);
        let entries = page::entries(entries).map(|(key, record)| (key, record.head()));
        source.listed.extend(entries.filter(|(key, _)| position_of(key) <= last));
        self.has_progressed = true;
        true
    }

    /// What the listed part of a window asks for: each key's newest head, and who holds it.
    fn gather(&mut self, reach: Option<u64>) -> BTreeMap<Bytes, Pull> {
        let mut newest: BTreeMap<Bytes, Pull> = BTreeMap::new();
        for source in &mut self.sources {
            let is_inside =
                |(key, _): &(Bytes, Head)| reach.is_none_or(|reach| position_of(key) < reach);
            while source.listed.front().is_some_and(is_inside) {
                let Some((key, head)) = source.listed.pop_front() else { break };
                let pull = newest.entry(key).or_insert_with(|| Pull {
                    head,
                    holders: Vec::new(),
                    asked: None,
                });
                if head.ts > pull.head.ts {
                    (pull.head, pull.holders) = (head, Vec::new());
                }
                if head.ts == pull.head.ts {
                    pull.holders.push(source.node);
                }
            }
        }
        newest
    }

    /// The source that should be asked for a record: the idle holder with the least to do.
    pub fn assign(&mut self) -> BTreeMap<NodeId, Vec<(Bytes, Head)>> {
        let idle = self.sources.iter().filter(|source| !source.fetching);
        let mut asked: BTreeMap<NodeId, Vec<(Bytes, Head)>> =
            idle.map(|source| (source.node, Vec::new())).collect();
        for (key, pull) in self.pulls.iter_mut().filter(|(_, pull)| pull.asked.is_none()) {
            let count = |node: &&NodeId| asked.get(*node).map_or(usize::MAX, Vec::len);
            let Some(&best) = pull.holders.iter().min_by_key(count) else { continue };
            match asked.get_mut(&best) {
                Some(keys) if keys.len() < FETCH_KEYS_MAX => {
                    keys.push((key.clone(), pull.head));
                    pull.asked = Some(best);
                }
                _ => {}
            }
        }
        asked.retain(|_, keys| !keys.is_empty());
        for source in &mut self.sources {
            source.fetching |= asked.contains_key(&source.node);
        }
        asked
    }

    /// A record arrived; returns whether it was asked for. What was not may be of a window that was
    /// begun anew: it is asked for again.
    pub fn take(&mut self, key: &Bytes, head: Head) -> bool {
        let is_asked = self.pulls.get(key).is_some_and(|pull| head.ts >= pull.head.ts);
        is_asked && self.pulls.remove(key).is_some()
    }

    /// A source answered a fetch: what it left out is asked for again.
    pub fn fetched(&mut self, from: NodeId) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.node == from) {
            source.fetching = false;
        }
        for pull in self.pulls.values_mut().filter(|pull| pull.asked == Some(from)) {
            pull.asked = None;
        }
        self.has_progressed = true;
    }

    /// The repetition timer: whether the window must be begun anew.
    fn is_stuck(&mut self) -> bool {
        if core::mem::take(&mut self.has_progressed) {
            self.stalls = 0;
            return false;
        }
        self.stalls += 1;
        for source in &mut self.sources {
            (source.fetching, source.asked) = (false, None);
        }
        self.pulls.values_mut().for_each(|pull| pull.asked = None);
        self.stalls.is_multiple_of(STALLS_MAX)
    }
}

impl Linearizable {
    /// Asks every source of a group's transfer for its next list, if there is room for it.
    pub(super) fn ask_lists(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        let Some(transfer) = &mut group.transfer else { return };
        let (round, since, forgot) = (transfer.round, transfer.since, transfer.forgot);
        if transfer.interval.is_none() {
            return;
        }
        for source in &mut transfer.sources {
            let has_room = source.listed.len() < TRANSFER_LISTED_MAX;
            if let Some(from) = source.next.filter(|from| has_room && source.asked != Some(*from)) {
                source.asked = Some(from);
                cx.fx.send(source.node, Message::ListA { round, since, forgot, from });
            }
        }
    }

    /// Asks every source again, in a new round: what they said of themselves must be confirmed.
    pub(super) fn ask_all_anew(&mut self, view: ViewId, cx: &mut Context<'_>) {
        if let Some(group) = self.group_mut(view)
            && let Some(transfer) = &mut group.transfer
        {
            transfer.sources.iter_mut().for_each(|source| source.asked = None);
        }
        self.ask_lists(view, cx);
    }

    /// Goes on with a transfer as far as what was listed and fetched allows.
    pub(super) fn advance_transfer(&mut self, view: ViewId, cx: &mut Context<'_>) {
        while let Some(group) = self.group_mut(view) {
            let slot = group.record.slot;
            let Some(transfer) = &mut group.transfer else { return };
            if transfer.is_done() {
                return self.end_transfer(view, cx);
            }
            if !transfer.pulls.is_empty() {
                return self.ask_records(view, cx);
            }
            if let Some(end) = transfer.window_end.take() {
                match end {
                    Some(end) => transfer.window = end,
                    None => transfer.next_interval(),
                }
                continue;
            }
            let Some(reach) = transfer.reach() else { return };
            let mut pulls = transfer.gather(reach);
            pulls.retain(|key, pull| {
                // Unless a newer one was accepted meanwhile.
                pull.head.ts > self.newest(&slot.stored(key), cx).ts
            });
            if let Some(group) = self.group_mut(view)
                && let Some(transfer) = &mut group.transfer
            {
                transfer.pulls = pulls;
                transfer.window_end = Some(reach);
            }
        }
    }

    /// Goes on with a transfer, and asks for what comes next.
    pub(super) fn go_on(&mut self, view: ViewId, cx: &mut Context<'_>) {
        self.advance_transfer(view, cx);
        self.ask_lists(view, cx);
        if self.group(view).is_some_and(|group| group.transfer.is_some()) {
            cx.fx.arm(Timer::Transfer, cx.now + REPEAT);
        }
    }

    /// The group whose transfer asks for this, and its slot.
    pub(super) fn transfer_of(&self, since: ViewId) -> Option<(ViewId, super::keys::Slot)> {
        let is_asking = |group: &&Group| group.transfer.as_ref().is_some_and(|t| t.since == since);
        let group = self.durable.groups.values().find(is_asking)?;
        Some((group.view.id, group.record.slot))
    }

    /// Transfers made no progress for a while, or may fetch more.
    pub(super) fn on_transfer_timer(&mut self, cx: &mut Context<'_>) {
        let moving = self.durable.groups.values().filter(|group| group.transfer.is_some());
        let moving: Vec<ViewId> = moving.map(|group| group.view.id).collect();
        for view in &moving {
            if let Some(group) = self.group_mut(*view)
                && let Some(transfer) = &mut group.transfer
                && transfer.is_stuck()
            {
                probe!("linearizable/transfer_begins_window_anew");
                let window = transfer.window;
                transfer.begin_window(window);
            }
            self.go_on(*view, cx);
        }
    }
}
