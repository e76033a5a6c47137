//! Checkpoints: copies of the state for whoever lacks more than logs hold, and letting go of what
//! is stored.
//!
//! A copy is the head of the state, taken in one turn, and pages of its items, read one at a time
//! while entries are executed. The log from the head on is executed onto it; it is right when the
//! newest entry that a page can hold was executed. What lags or joins asks for one page after the
//! other, so the source's lane decides the pace.

use crate::vsr::action::{Action, Context};
use crate::vsr::configuration::Configuration;
use crate::vsr::message::Message;
use crate::vsr::number::{Op, Position};
use crate::vsr::state::Replica;
use crate::vsr::timer::{ASK_AGAIN, COPY_KEPT};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::{VSR_COPIES_MAX, VSR_PAGE_BYTES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

/// How often in a row a source is asked that does not answer.
const ATTEMPTS: u32 = 8;

/// What a `Checkpoint` tells beside its bytes.
#[derive(Debug)]
pub struct Piece {
    /// The last entry that the head holds.
    pub at: Position,
    /// The members at that time.
    pub configuration: Configuration,
    /// The last entry that a page can hold.
    pub applied: Op,
    /// Which copy it is of, and the number of the page; 0 is the head.
    pub page: (u64, u64),
    /// Where the next page begins.
    pub next: Option<Vec<u8>>,
}

/// A copy of the state that is under way.
#[derive(Debug)]
pub struct Install {
    /// Names the copy.
    pub nonce: u64,
    /// Who is asked.
    pub source: Option<NodeId>,
    /// The head's last entry, once it has come.
    pub at: Option<(Position, Configuration)>,
    /// The newest entry that the pages so far can hold.
    pub newest: Op,
    /// The number of the next page.
    pub page: u64,
    /// Where the next page begins.
    pub cursor: Vec<u8>,
    /// Whether all pages have come: what they take the place of is being removed.
    pub is_whole: bool,
    /// When a page was asked for, or has come.
    pub asked_at: Option<Time>,
    /// How often in a row nothing has come of this source.
    pub attempts: u32,
    /// How often in a row nothing has come of anybody.
    pub vain: u32,
}

impl Replica {
    /// Lets go of entries that the machine has stored the effects of, but for those that members
    /// who lag may ask for: some in any case, and more while a member has not acknowledged them.
    pub(crate) fn trim(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        self.copies.retain(|_, (_, asked_at)| now - *asked_at <= COPY_KEPT);
        let stored = cx.machine.stored().min(self.applied);
        let heads: BTreeSet<Op> = self.copies.values().map(|(op, _)| *op).collect();
        cx.machine.keep(&heads);
        let copied = heads.first().copied();
        let kept = self.settings.kept;
        let upto = Op(stored.0.min(self.applied.0.saturating_sub(kept.entries)));
        let held = self.held().max(self.log.before_bytes(kept.bytes));
        let upto = copied.map_or(upto, |op| op.min(upto)).min(held);
        if upto > self.log.base().op {
            self.log.trim(upto, cx.out);
            self.save(cx);
        }
    }

    /// Up to where all members have acknowledged what is committed, as far as this node knows.
    pub(crate) fn held(&self) -> Op {
        let Some(primary) = &self.primary else { return self.held };
        let acked = |node| primary.acked.get(node).copied().unwrap_or_default();
        // Nobody who has left asks for anything.
        let members = self.head.configuration.members.iter();
        let held = members.filter(|node| !self.left.contains(*node)).map(acked).min();
        // Where others have left, this node alone may have acknowledged more than is committed.
        held.unwrap_or_default().min(self.commit)
    }

    /// Somebody lacks more than the log holds.
    pub(crate) fn on_get_checkpoint(
        &mut self,
        from: Incarnation,
        (nonce, at): (u64, Op),
        (page, cursor): (u64, Bytes),
        cx: &mut Context<'_>,
    ) {
        let is_full = self.copies.len() >= VSR_COPIES_MAX && !self.copies.contains_key(&from.node);
        // After a restart the members may be known of a later entry than was executed again: a head
        // of before would not fit them.
        let lags = self.applied < self.head.configuration.since && !mutant!("heads_before_members");
        if !self.is_settled() || is_full || self.applied == Op(0) || lags {
            return;
        }
        invariant!(self.applied >= self.log.base().op, "the log lets go of what was executed");
        let is_head = page == 0;
        let op = if is_head { self.applied } else { at };
        // After a restart a source may have executed less than its head of before.
        let is_older = op > self.applied && !mutant!("page_older_than_head");
        let Some(view) = self.log.view_at(op).filter(|_| !is_older) else {
            // The log behind that head is gone, or not here yet.
            return;
        };
        self.copies.insert(from.node, (op, cx.now));
        invariant!(self.copies.len() <= VSR_COPIES_MAX, "few copies are under way");
        let (body, next) = if is_head {
            (cx.machine.head(op), Some(Vec::new()))
        } else {
            let read = cx.machine.page(op, &cursor, VSR_PAGE_BYTES_MAX, cx.table);
            // Whoever asks begins anew if nobody answers.
            let Some(read) = read else { return };
            (read.items, read.next.map(|next| next.to_vec()))
        };
        let message = Message::Checkpoint {
            nonce,
            at: Position { op, view },
            configuration: self.head.configuration.clone(),
            applied: self.applied,
            page,
            next,
            body,
        };
        // Only what is committed was executed: it rests on a majority, not on this node's disk.
        cx.send(from.node, message, self.as_durable_as_its_epoch());
    }

    /// The log of a source begins behind what is here: its state is copied. If one is being copied
    /// and its source does not answer, this one takes its place: it is there, and the members that
    /// are known here may all be gone.
    pub(crate) fn install_from(&mut self, source: NodeId, cx: &mut Context<'_>) {
        if self.is_serving() && !mutant!("reads_while_copying") {
            // A primary lacks nothing that its epoch has committed. So a later one has begun, and
            // what the machine will hold is no state that this primary's entries follow.
            probe!("vsr/a_primary_must_copy");
            self.begin_view(self.head.view.next(), cx);
        }
        let nonce = self.next_nonce(cx);
        let install = self.install.get_or_insert_with(|| Install::new(nonce));
        let is_silent = install.attempts >= ATTEMPTS && !mutant!("copies_from_the_gone");
        if is_silent && install.source != Some(source) {
            probe!("vsr/another_source");
            let vain = if mutant!("another_source_begins_to_hope") { 0 } else { install.vain };
            *install = Install { vain, ..Install::new(nonce) };
        }
        if install.source.is_none() {
            install.source = Some(source);
            self.ask_page(cx);
        }
    }

    fn ask_page(&mut self, cx: &mut Context<'_>) {
        let Some(install) = &mut self.install else { return };
        let Some(source) = install.source else { return };
        install.asked_at = Some(cx.now);
        let at = install.at.as_ref().map_or(Op(0), |(at, _)| at.op);
        let (nonce, page, cursor) = (install.nonce, install.page, install.cursor.clone());
        let has_forgotten = self.head.has_forgotten;
        let message = Message::GetCheckpoint { nonce, at, page, cursor, has_forgotten };
        // A question promises nothing.
        cx.send(source, message, Release::Early);
    }

    /// A page that does not come is asked for again; in the end another source is asked for
    /// everything.
    pub(crate) fn tick_install(&mut self, cx: &mut Context<'_>) {
        if self.go_on_installing(cx) {
            return;
        }
        let Some(install) = &mut self.install else { return };
        let waits = install.asked_at.map(|at| cx.now - at);
        if waits.is_none_or(|wait| wait < ASK_AGAIN) && install.source.is_some() {
            return;
        }
        install.attempts += 1;
        install.vain = install.vain.saturating_add(1);
        if install.attempts.is_multiple_of(ATTEMPTS) || install.source.is_none() {
            let (attempts, vain) = (install.attempts, install.vain);
            // The one that was heard last, then one after the other. Who knows no members waits
            // for a beat.
            let mut heard: Vec<NodeId> = self.others().to_vec();
            heard.sort_unstable_by_key(|node| self.pulse.heard.get(node).copied());
            let source = heard.iter().rev().cycle().nth((attempts / ATTEMPTS) as usize).copied();
            let nonce = self.next_nonce(cx);
            self.install = Some(Install { source, attempts, vain, ..Install::new(nonce) });
        }
        self.ask_page(cx);
    }

    /// The head of a copy, or a page of it.
    pub(crate) fn on_checkpoint(
        &mut self,
        from: Incarnation,
        piece: Piece,
        body: &Bytes,
        cx: &mut Context<'_>,
    ) {
        // One that is no newer is of use where the state is worth nothing.
        let is_newer =
            piece.at.op > self.applied || (piece.at.op == self.applied && self.head.is_installing);
        let Some(install) = &mut self.install else { return };
        // A page that was asked for twice comes twice, and one of another copy may begin elsewhere.
        let is_asked = piece.page == (install.nonce, install.page) || mutant!("page_comes_twice");
        if install.source != Some(from.node) || !is_asked || install.is_whole {
            return;
        }
        install.asked_at = Some(cx.now);
        install.attempts = 0;
        install.vain = 0;
        if install.at.as_ref().is_some_and(|(_, of)| of.epoch != piece.configuration.epoch) {
            // What earlier pages hold beyond the head may have been lost with the epoch.
            let nonce = self.next_nonce(cx);
            self.install = Some(Install { source: Some(from.node), ..Install::new(nonce) });
            return self.ask_page(cx);
        }
        // A source that restarts may have executed less than it had for an earlier page.
        install.newest = install.newest.max(piece.applied);
        let at = install.at.as_ref().map(|(at, _)| *at);
        let (_, page) = piece.page;
        let is_taken = match (page == 0, at) {
            (true, None) => is_newer && self.take_head(&piece, body, cx),
            (false, Some(at)) if at == piece.at => self.take_page(body, cx),
            _ => return,
        };
        if !is_taken {
            // Nothing newer than what is here, or nothing that can be read: whoever asks finds the
            // entries elsewhere.
            let nonce = self.next_nonce(cx);
            self.install = self.head.is_installing.then(|| Install::new(nonce));
            if !mutant!("waits_for_no_copy") {
                // What was committed meanwhile has waited for the copy; so has a primary.
                self.execute(cx);
            }
            return;
        }
        invariant!(self.head.is_installing, "a copy under way is noted before its pages");
        let Some(install) = &mut self.install else { return };
        invariant!(install.at.is_some(), "pages follow their head");
        match piece.next {
            Some(next) => {
                install.page = page.saturating_add(1);
                install.cursor = next;
                self.ask_page(cx);
            }
            None => self.finish_install(from.node, cx),
        }
    }

    /// Begins to put a copy in the place of the state; false if it is of no use.
    fn take_head(&mut self, piece: &Piece, body: &Bytes, cx: &mut Context<'_>) -> bool {
        let (machine, mut store) = cx.machine();
        if self.contradicts(piece.at, &piece.configuration)
            || !machine.begin_install(piece.at.op, body, &mut store)
        {
            cx.out.push(Action::Refuse("the head of a copy fits nothing"));
            return false;
        }
        let Some(install) = &mut self.install else { return false };
        install.at = Some((piece.at, piece.configuration.clone()));
        self.head.is_installing = true;
        self.save(cx);
        true
    }

    fn take_page(&mut self, body: &Bytes, cx: &mut Context<'_>) -> bool {
        let (machine, mut store) = cx.machine();
        let is_read = machine.install(body, &mut store);
        if !is_read {
            cx.out.push(Action::Refuse("a page of a copy cannot be read"));
        }
        is_read
    }

    /// Whether a copy's head says otherwise than what is committed here. In a later epoch that may
    /// be so: what is here was lost.
    fn contradicts(&self, at: Position, configuration: &Configuration) -> bool {
        let view = self.log.view_at(at.op).filter(|_| at.op <= self.commit);
        // A primary has all that was committed in its epoch.
        let lacks = self.primary.is_some() && !self.log.has(at);
        configuration.epoch <= self.epoch() && (lacks || view.is_some_and(|view| view != at.view))
    }

    /// All pages are here. What is left of the state before goes first, so much a turn: it is not
    /// to be taken for a part of this one, and until then the copy is under way, durably.
    fn finish_install(&mut self, source: NodeId, cx: &mut Context<'_>) {
        let (machine, mut store) = cx.machine();
        if machine.clear_away(&mut store) {
            return self.end_install(source, cx);
        }
        probe!("vsr/clears_away");
        invariant!(self.head.is_installing, "a crash begins the copy anew");
        if let Some(install) = &mut self.install {
            install.is_whole = true;
        }
        cx.out.push(Action::Resume);
    }

    /// Goes on with a copy whose pages are all here; whether there is one.
    pub(crate) fn go_on_installing(&mut self, cx: &mut Context<'_>) -> bool {
        let is_whole = |install: &&Install| install.is_whole;
        let source = self.install.as_ref().filter(is_whole).and_then(|install| install.source);
        if let Some(source) = source {
            self.finish_install(source, cx);
        }
        source.is_some()
    }

    /// The copy is complete. It takes the place of the log up to its head; what was acknowledged
    /// behind it stays.
    fn end_install(&mut self, source: NodeId, cx: &mut Context<'_>) {
        probe!("vsr/copied");
        let install = self.install.take().expect("a copy is under way");
        let (at, configuration) = install.at.expect("its head has come");
        if self.contradicts(at, &configuration) {
            // What is here has come while pages did.
            let nonce = self.next_nonce(cx);
            self.install = Some(Install::new(nonce));
            return cx.out.push(Action::Refuse("a copy says otherwise than what is committed"));
        }
        invariant!(at.op >= self.applied, "a copy is no older than what was executed");
        let (machine, mut store) = cx.machine();
        machine.end_install(at.op, &mut store);
        if self.log.has(at) {
            self.log.trim(at.op, cx.out);
        } else {
            // What is here at that place was never committed, nor what follows it.
            self.log.reset(at, cx.out);
            self.commit = at.op;
        }
        self.head.is_installing = false;
        self.head.settled = if mutant!("fuzzy_is_right") { at.op } else { install.newest };
        self.head.end = if self.log.end() == at.op { at.op } else { self.head.end.max(at.op) };
        self.commit = self.commit.max(at.op);
        self.applied = at.op;
        self.stage = None;
        self.asked = None;
        self.save(cx);
        self.keep_up(cx);
        if configuration.epoch > self.epoch() {
            let was_member = self.is_member() && !mutant!("removed_by_a_copy_stays");
            self.step_down(cx);
            // Whoever gave the copy may have told who was removed; this node has told nobody.
            let is_handed_over = configuration.is_handed_over() && !mutant!("copies_are_not_held");
            self.head.is_held = is_handed_over && self.settings.may_forget();
            self.head.configuration = configuration;
            cx.tell(crate::vsr::action::Event::Members(self.head.configuration.clone()));
            self.begin_epoch(was_member, cx);
        }
        self.execute(cx);
        self.ask_further(source, cx);
    }
}

impl Install {
    /// Whether a copy can be hoped for: not all of so many others were asked in vain, twice.
    pub(crate) fn may_come(&self, others: usize) -> bool {
        self.vain < 2 * ATTEMPTS * others.max(1) as u32
    }

    /// A copy of which nothing has come.
    pub(crate) fn new(nonce: u64) -> Install {
        Install {
            nonce,
            source: None,
            at: None,
            newest: Op(0),
            page: 0,
            cursor: Vec::new(),
            is_whole: false,
            asked_at: None,
            attempts: 0,
            vain: 0,
        }
    }
}
