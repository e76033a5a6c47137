//! What was taken over without a copy, and how that ends.
//!
//! Where all that had a part are gone for long a node goes on with what there is, and is in doubt
//! of it. That is stored, so a start does not end it; a page says it, so who takes over of such a
//! node alone is in doubt of that part, too; and in such a part nobody is a copy for others.
//!
//! ```text
//! a ── CopyA(range) ─▶ b     of what of this have you all?
//! a ◀── CopyB(parts) ─ b     of these parts
//! a ── Compare ──────▶ b     where they meet what is lost: ends it, leaf by leaf
//! ```
//! It ends with a comparison with one that had a copy. There may be none any more: nobody can wait
//! for what is gone for ever. But a host that is down may have one. So it ends as well when all
//! that the ring names in the slice, or that are known there, have said that they have none either,
//! and have no more there than this node: who has not all may have some. Then nobody is left who
//! could bring it. Whoever will not come back its operator removes from the ring. (What a member is
//! given after that by one that was no member, this node lacks until they are compared again.)

use super::doubt::Doubt;
use crate::epidemic::keys::LOST;
use crate::epidemic::message::Message;
use crate::epidemic::replica::range::{Leaf, Range};
use crate::epidemic::replica::seen::Write;
use crate::epidemic::state::State;
use crate::epidemic::{Context, Epidemic};
use crate::slices::position::Position;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::plain::PlainData;
use quorate_kernel::{invariant, mutant, probe};
use serde::{Deserialize, Serialize};

/// What is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored(Vec<(Leaf, Leaf)>);

impl PlainData for Stored {}

impl Doubt {
    /// Stores what is lost, if that has changed.
    pub(super) fn store(&mut self, writes: &mut Vec<Write>) {
        let runs = self.lost.runs();
        if runs != self.stored {
            self.stored.clone_from(&runs);
            writes.push((LOST, (!runs.is_empty()).then(|| Stored(runs).to_bytes())));
        }
    }

    /// Reads what is stored; returns whether it was that.
    pub(in crate::epidemic) fn load(&mut self, key: &[u8], value: &[u8]) -> bool {
        let is_it = key == &LOST[..];
        if is_it && !mutant!("epidemic_loss_is_forgotten") {
            let Stored(runs) = Stored::from_bytes(value).expect("this lane wrote it");
            runs.iter().for_each(|run| self.lost.insert(*run));
            self.stored = runs;
        }
        is_it
    }

    /// Asserts what must hold between two inputs.
    pub(in crate::epidemic) fn check(&self) {
        assert_eq!(self.stored, self.lost.runs(), "what is lost is stored");
    }

    /// The parts of a range that were taken over without a copy.
    pub(super) fn lost_within(&self, range: &Range) -> Vec<Range> {
        self.lost.within(range)
    }
}

impl State {
    /// Nothing is here of a range, so nothing of it is lost.
    pub(in crate::epidemic) fn forget_lost(&mut self, range: &Range) {
        self.doubt.end_lost(range);
        self.doubt.store(&mut self.writes);
    }
}

impl Epidemic {
    /// Stores what is lost, as a comparison has left it.
    pub(super) fn flush_doubt(&mut self, cx: &mut Context<'_>) {
        self.state.doubt.store(&mut self.state.writes);
        self.flush(cx);
    }

    /// A part is taken over, of which these have no copy here: others may have what is missing.
    pub(in crate::epidemic) fn begin_doubt(&mut self, target: &Range, lost: &[Range]) {
        let state = &mut self.state;
        state.doubt.end_lost(target);
        for part in lost.iter().filter(|_| !mutant!("epidemic_lost_is_not_there")) {
            probe!("epidemic/joined_without_a_copy");
            state.doubt.begin_lost(part);
        }
        state.doubt.store(&mut state.writes);
    }

    /// A member is asked of what it has a copy, if anything is lost here.
    pub(super) fn ask_for_copy(&mut self, range: Range, member: NodeId, cx: &mut Context<'_>) {
        if self.state.doubt.lost_within(&range).is_empty() {
            return;
        }
        self.state.questions += 1;
        let number = self.state.questions;
        self.state.doubt.copy_asked = Some((member, number));
        // A question promises nothing.
        cx.fx.send_early(member, Message::CopyA { number, range });
    }

    /// A member asks of what of a range this node has a copy. Who joins may have one on its disk,
    /// and says nothing.
    pub(in crate::epidemic) fn on_copy(
        &mut self,
        from: Incarnation,
        (number, range): (u64, Range),
        cx: &mut Context<'_>,
    ) {
        invariant!(range.is_sound(), "a range is what it says");
        if !self.state.ready.is_some_and(|ready| ready.covers(&range)) {
            return;
        }
        let mut parts = Vec::from([range]);
        for lost in self.state.doubt.lost_within(&range) {
            parts = parts.iter().flat_map(|part| part.without(&lost)).collect();
        }
        invariant!(parts.iter().all(|part| range.covers(part)), "it says what was asked for");
        cx.fx.send(from, Message::CopyB { number, parts });
    }

    /// A member has told of what it has a copy: it is compared with, where that is lost here.
    pub(in crate::epidemic) fn on_copies(
        &mut self,
        from: Incarnation,
        (number, parts): (u64, Vec<Range>),
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        if self.state.doubt.copy_asked != Some((from.node, number)) {
            return;
        }
        self.state.doubt.copy_asked = None;
        let Some(range) = self.state.range().filter(|_| self.state.is_whole()) else { return };
        let lost = self.state.doubt.lost_within(&range);
        if lost.iter().any(|lost| parts.iter().any(|part| part.meets(lost))) {
            probe!("epidemic/copy_compared");
            self.state.doubt.note_copy(from.node);
            self.compare(range, from.node, parts, cx);
        } else {
            self.state.doubt.note_lacks(from);
            self.end_if_nobody_has_it(range, cx);
        }
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// Nobody that there is has a copy of what is lost in a range: this is all that there is.
    pub(super) fn end_if_nobody_has_it(&mut self, range: Range, cx: &mut Context<'_>) {
        let state = &mut self.state;
        if state.doubt.lost_within(&range).is_empty() || mutant!("epidemic_doubts_for_ever") {
            return;
        }
        let told = state.hints.iter().chain(state.slices.members()).map(|peer| peer.who);
        let others = told.filter(|who| who.node != state.me.node);
        let mut there: BTreeMap<NodeId, Start> = BTreeMap::new();
        for who in others.clone().filter(|who| range.has(Position::of(who.node))) {
            let start = there.entry(who.node).or_insert(who.start);
            *start = who.start.max(*start);
        }
        // Who was told of nobody, and hears others, knows nothing of a ring.
        if others.count() == 0 && !state.cyclon.view().is_empty() {
            return;
        }
        state.doubt.end_what_none_has(&range, &there);
        state.doubt.store(&mut state.writes);
        if !state.writes.is_empty() {
            probe!("epidemic/nobody_has_it");
            self.flush(cx);
        }
    }
}
