//! Comparing what members of a group hold, in the background: who missed a write that nobody
//! reads, or a delete, gets it from those who have it.
//!
//! A write is complete when a majority holds it, and a member that could not be reached then hears
//! of it only when somebody reads the key. Until then there is one copy less, and a tombstone that
//! one member lacks never goes. So each member walks over its data, a small piece at a time, group
//! after group, and compares it with the other members:
//!
//! ```text
//! asker ── CompareA(piece: digests of its parts) ──▶ each other member whose data is complete
//!       ◀── CompareB(heads of the parts that differ) ──
//!       ── RecordsA(keys that are newer there) ──▶
//!       ◀── RecordsB(records, generation, epoch) ─      stored where they are newer
//! ```
//!
//! A digest covers keys, timestamps and whether there is a value. Of parts that are equal, as
//! nearly all are, nothing more is said. Each asks for itself: what only the asker has, the others
//! find on their own walks. What one turn looks through is bounded; a piece without differences
//! leads to the next one only when the groups are maintained again, and after a pass over all
//! groups there is a rest. Answers wait in line with those to transfers and give way to clients
//! ([`super::serve`]).
//!
//! # Why it cannot do harm
//! - *No timestamp falls.* A record is stored by [`Linearizable::store`], which keeps the newest,
//!   as what a get imposes is. What a walk stores some member has accepted as a write; that it
//!   comes to one more is what any get of the key would do.
//! - *Nothing is acknowledged.* No answer to a client or coordinator rests on a comparison, and
//!   none is sent: the record counts here when somebody asks for it and finds it durable.
//! - *Nothing deleted comes back.* A record says in which generation its sender was when it read
//!   it, and is refused where tombstones were removed since, as what a get imposes: in an enforced
//!   generation each member held the tombstones that go, so what is read there is not older
//!   ([`super::purge`]). A tombstone that some member still holds may spread again, and goes with
//!   the next removal.
//! - *No view is mixed with another.* Both must be members of the same installed view with all
//!   data, when it is asked and when the answer comes. While a group changes nothing is compared:
//!   then data moves by transfers, whose order views rest on.

use super::digest;
use super::replica::{end_of_interval, newest};
use super::serve::TransferRequest;
use crate::linearizable::group::{Group, Standing};
use crate::linearizable::keys::{first_of, next_interval, start_of, token_of};
use crate::linearizable::message::{Basis, Message};
use crate::linearizable::record::{Head, Record};
use crate::linearizable::views::conditions::recent;
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable, Mode};
use alloc::collections::{BTreeMap, BTreeSet};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::FETCH_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::ViewId;

/// After so many looks without an answer a group is left for the next pass.
const SILENCE_MAX: u32 = 16;

/// Where this node's pass over its groups stands.
#[derive(Debug, Default)]
pub(crate) struct Comparing {
    /// The group that was compared last.
    last: Option<GroupId>,
    walk: Option<Walk>,
    /// When the present pass began.
    began: Option<Time>,
    /// Whether the pass is over, and the next one not due.
    is_resting: bool,
    /// Names the question in its answers; never used twice in one start.
    round: u64,
}

/// A walk over one group's data.
#[derive(Debug)]
struct Walk {
    view: ViewId,
    /// Where the present piece begins.
    from: Bytes,
    /// The parts of the piece, as they were here.
    parts: Bytes,
    /// Up to where everybody has compared: less than the piece if somebody holds much more.
    end: Option<Bytes>,
    round: u64,
    /// Who has something left to say, and which of its records are newer.
    waiting: BTreeMap<NodeId, Option<BTreeMap<Bytes, Head>>>,
    /// Looks since an answer came.
    silence: u32,
    /// Whether something newer was found in the piece.
    has_found: bool,
}

impl Comparing {
    /// Whether the walk under way, if there is one, asked in the newest round.
    fn asks_in_newest(&self) -> bool {
        self.walk.as_ref().is_none_or(|walk| walk.round == self.round)
    }
}

impl Linearizable {
    /// Goes on with the present pass, or begins one when it is due.
    pub(crate) fn maintain_comparison(&mut self, cx: &mut Context<'_>) {
        let every = self.settings.pace.compare;
        let is_left_out = mutant!("eventual_in_vain") && self.settings.mode == Mode::Eventual;
        if every == Span(0) || self.volatile.is_closing() || is_left_out {
            return;
        }
        if let Some(walk) = &mut self.volatile.comparing.walk {
            walk.silence += 1;
            let (view, is_silent) = (walk.view, walk.silence > SILENCE_MAX);
            if is_silent || self.comparable(view, cx).is_none() {
                probe!("linearizable/comparison_given_up");
                self.volatile.comparing.walk = None;
            } else if !self.finish_piece(cx) {
                return self.ask_waiting(cx);
            }
            return;
        }
        let comparing = &mut self.volatile.comparing;
        let began = *comparing.began.get_or_insert(cx.now);
        if comparing.is_resting {
            if cx.now < began + every {
                return;
            }
            (comparing.began, comparing.is_resting) = (Some(cx.now), false);
        }
        while let Some(view) = self.group_after(self.volatile.comparing.last) {
            self.volatile.comparing.last = Some(view.group);
            if self.comparable(view, cx).is_some_and(|peers| !peers.is_empty()) {
                let from = self.group(view).map(|group| start_of(&group.view.range));
                return self.compare(view, first_of(&from.unwrap_or_default()), cx);
            }
        }
        (self.volatile.comparing.last, self.volatile.comparing.is_resting) = (None, true);
    }

    /// The other members of a view that hold all data, if the group is at rest as far as is known
    /// here; none if it is not.
    fn comparable(&self, view: ViewId, cx: &Context<'_>) -> Option<BTreeSet<NodeId>> {
        let group = self.group(view).filter(|group| group.view.id == view && group.is_whole())?;
        let is_changing =
            group.running.is_some() || group.wished.is_some() || !group.record.owed.is_empty();
        let is_complete = |node: &NodeId| {
            let heard = recent(group, *node, cx.now).filter(|heard| heard.version == view.version);
            *node != cx.me.node && heard.is_some_and(|heard| heard.standing == Standing::Ready)
        };
        let peers = group.view.members().iter().copied().filter(is_complete);
        (!is_changing).then(|| peers.collect())
    }

    /// Compares the piece that begins at a cursor.
    fn compare(&mut self, view: ViewId, from: Bytes, cx: &mut Context<'_>) {
        let Some(peers) = self.comparable(view, cx) else { return };
        let Some(group) = self.group(view) else { return };
        assert!(group.view.range.contains(token_of(&from)), "a piece lies in the range");
        let parts = digest::piece(group, &from, self.settings.pace.list_keys, cx);
        let comparing = &mut self.volatile.comparing;
        comparing.round += 1;
        let waiting = peers.into_iter().map(|node| (node, None)).collect();
        let (end, round) = (digest::end_of(&parts), comparing.round);
        let (silence, has_found) = (0, false);
        let walk = Walk { view, from, parts, end, round, waiting, silence, has_found };
        comparing.walk = Some(walk);
        self.ask_waiting(cx);
    }

    /// Asks those who have something left to say.
    fn ask_waiting(&mut self, cx: &mut Context<'_>) {
        let nodes: BTreeSet<NodeId> = match &self.volatile.comparing.walk {
            Some(walk) => walk.waiting.keys().copied().collect(),
            None => return,
        };
        nodes.into_iter().for_each(|node| self.ask_peer(node, cx));
    }

    fn ask_peer(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let rate = self.settings.transfer_bytes_per_second;
        let may_fetch = self.volatile.budget.may_ask(rate, cx.now);
        let Some(walk) = &self.volatile.comparing.walk else { return };
        let (round, view) = (walk.round, walk.view);
        match walk.waiting.get(&node) {
            Some(None) => {
                let (from, parts) = (walk.from.clone(), walk.parts.clone());
                // A question promises nothing.
                cx.fx.send_early(node, Message::CompareA { round, view, from, parts });
            }
            Some(Some(wanted)) if may_fetch => {
                let mut keys = BytesMut::new();
                for (key, head) in wanted {
                    page::push(&mut keys, key, Record::of_head(*head).bytes());
                }
                // It waits until what came before is durable: no more is asked for than the disk
                // takes.
                cx.fx.send(node, Message::RecordsA { round, view, page: keys.freeze() });
            }
            // It is asked when the groups are maintained again.
            Some(Some(_)) | None => {}
        }
    }

    /// Goes on with the next piece if nobody has anything left to say about the present one;
    /// returns whether that is so.
    fn finish_piece(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(walk) = &self.volatile.comparing.walk else { return true };
        if !walk.waiting.is_empty() {
            return false;
        }
        let (view, at) = (walk.view, token_of(&walk.from));
        let next = walk.end.clone();
        if next.is_some() {
            probe!("linearizable/comparison_of_pieces");
        }
        let next_interval = || {
            let group = self.group(view)?;
            next_interval(&group.view.range, at).map(|begin| first_of(&begin))
        };
        let next = next.or_else(next_interval);
        self.volatile.comparing.walk = None;
        if let Some(from) = next {
            self.compare(view, from, cx);
        }
        true
    }

    /// What a member compared is settled: a piece in which something was found leads to the next
    /// one at once.
    fn settle_peer(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let Some(walk) = &mut self.volatile.comparing.walk else { return };
        walk.waiting.remove(&node);
        if walk.has_found {
            self.finish_piece(cx);
        }
    }

    /// A member compared a piece: these are all its keys in the parts that differ.
    pub(crate) fn on_compared(
        &mut self,
        from: Incarnation,
        (round, view): (u64, ViewId),
        (entries, stopped): (Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        invariant!(self.volatile.comparing.asks_in_newest(), "rounds come from one counter");
        let is_open = self.comparable(view, cx).is_some();
        let range = self.group(view).map(|group| group.view.range);
        let Some(walk) = &mut self.volatile.comparing.walk else { return };
        let is_asked = walk.round == round && walk.waiting.get(&from.node) == Some(&None);
        if !is_open || walk.view != view || !is_asked {
            return;
        }
        invariant!(!walk.waiting.contains_key(&cx.me.node), "nobody compares with himself");
        walk.silence = 0;
        let last = range.map_or(0, |range| end_of_interval(&range, token_of(&walk.from)));
        if !stopped.is_empty() && stopped > walk.from && token_of(&stopped) <= last {
            let is_first = walk.end.as_ref().is_none_or(|end| stopped < *end);
            walk.end = if is_first { Some(stopped) } else { walk.end.take() };
        }
        let mut wanted = BTreeMap::new();
        for (key, record) in page::entries(entries) {
            let (head, stored) = (record.head(), self.stored_key(view, &key));
            if stored.is_some_and(|stored| head.ts > newest(&stored, cx).ts) {
                wanted.insert(key, head);
            }
        }
        let Some(walk) = &mut self.volatile.comparing.walk else { return };
        if wanted.is_empty() {
            return self.settle_peer(from.node, cx);
        }
        probe!("linearizable/comparison_finds");
        walk.has_found = true;
        walk.waiting.insert(from.node, Some(wanted));
        self.ask_peer(from.node, cx);
    }

    /// A member sent records that are newer than what was here.
    pub(crate) fn on_records(
        &mut self,
        from: Incarnation,
        (round, view): (u64, ViewId),
        (generation, epoch): (u64, u64),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let basis = Basis { generation, is_imposed: true, epoch };
        let is_open = self.may_restore(view, &basis);
        invariant!(self.volatile.comparing.asks_in_newest(), "rounds come from one counter");
        let Some(walk) = &mut self.volatile.comparing.walk else { return };
        if walk.round != round || walk.view != view {
            return;
        }
        let Some(Some(wanted)) = walk.waiting.get_mut(&from.node) else { return };
        walk.silence = 0;
        let mut asked = core::mem::take(wanted);
        let count = asked.len();
        invariant!(count > 0, "who has nothing to send is not waited for");
        self.volatile.budget.spend(entries.len());
        let mut last = None;
        for (key, record) in page::entries(entries) {
            let is_asked = asked.get(&key).is_some_and(|head| record.head().ts >= head.ts);
            let stored = self.stored_key(view, &key).filter(|_| is_open && is_asked);
            if let Some(stored) = stored {
                self.restore(view, &stored, record, cx);
            }
            last = Some(key);
        }
        let Some(walk) = &mut self.volatile.comparing.walk else { return };
        let is_behind = last.as_ref().is_some_and(|last| !asked.contains_key(last));
        if is_behind && !mutant!("second_answer_skips_a_key") {
            // The question was asked twice: this is the other answer to it.
            walk.waiting.insert(from.node, Some(asked));
            return;
        }
        // They come in the order of their keys: what is missing before the last is there no more.
        let left = last.map(|last| asked.split_off(&last)).unwrap_or_default();
        let left: BTreeMap<Bytes, Head> = left.into_iter().skip(1).collect();
        invariant!(left.len() < count, "each answer leaves less to ask for");
        if left.is_empty() || !is_open {
            return self.settle_peer(from.node, cx);
        }
        walk.waiting.insert(from.node, Some(left));
        self.ask_peer(from.node, cx);
    }

    /// Answers a member that compares; returns about how many bytes were handled.
    pub(crate) fn answer_comparison(
        &mut self,
        asker: Incarnation,
        question: TransferRequest,
        cx: &mut Context<'_>,
    ) -> usize {
        let is_open = |group: &&Group, view| group.view.id == view && group.is_whole();
        match question {
            TransferRequest::Compare { round, view, from, parts } => {
                let group = self.group(view).filter(|group| is_open(group, view));
                let inside = |group: &&Group| group.view.range.contains(token_of(&from));
                let Some(group) = group.filter(inside) else { return 0 };
                let difference =
                    digest::differ(group, (&from, &parts), self.settings.pace.list_keys, cx);
                let handled = difference.page.len() * 4 + difference.keys * 16;
                let (page, upto) = (difference.page.freeze(), difference.stopped);
                let upto = upto.unwrap_or_default();
                // A hint on what to ask for.
                cx.fx.send_early(asker, Message::CompareB { round, view, page, upto });
                handled
            }
            TransferRequest::Records { round, view, page } => {
                let Some(group) = self.group(view).filter(|group| is_open(group, view)) else {
                    return 0;
                };
                let (generation, epoch) = (group.record.generation.number, group.record.epoch);
                let mut records = BytesMut::new();
                for (key, _) in page::entries(page) {
                    if records.len() >= FETCH_BYTES_MAX {
                        break;
                    }
                    let stored = self.stored_key(view, &key);
                    if let Some(record) = stored.and_then(|key| cx.table.get(Class::Data, &key)) {
                        page::push(&mut records, &key, &record);
                    }
                }
                let (handled, page) = (records.len(), records.freeze());
                // Records are handed on as their writers sent them, here durable or not; the
                // generation and the epoch are of this node's record of the group.
                let answer = Message::RecordsB { round, view, generation, epoch, page };
                cx.fx.send_after_state(asker, answer);
                handled
            }
            TransferRequest::List { .. } | TransferRequest::Fetch { .. } => {
                unreachable!("those are of transfers")
            }
        }
    }
}
