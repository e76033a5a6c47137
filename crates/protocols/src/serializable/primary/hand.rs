//! What a primary hands to the log, in one order, as far as the log takes it.
//!
//! The tail is all that a primary has proposed. Its first entries were handed to the log; the rest
//! waits: for room by number and bytes, or because the log has refused it. Only what was handed on
//! and not refused is in the log; nothing else is executed, and a later primary has none of it.

use super::in_hand::Primary;
use crate::serializable::engine::{Action, Context};
use crate::serializable::execute::entry::Entry;
use crate::serializable::execute::head::of_remembered;
use crate::serializable::rules;
use bytes::Bytes;
use quorate_kernel::invariant;
use quorate_kernel::mutant;

impl Primary {
    /// Puts an entry into the log, or behind those that wait for room in it.
    pub fn propose(&mut self, entry: Entry, cx: &mut Context<'_>) {
        // They would refuse all that comes behind it as well. While it is in no log, another that
        // leads can go on.
        let is_read =
            entry.is_sound() && entry.is_of(cx.state.group) || mutant!("txn_proposes_anything");
        invariant!(is_read, "members would not take {entry:?}");
        let bytes = entry.bytes();
        if let Some(tx) = entry.tx() {
            self.note_ahead(tx, of_remembered(&entry), cx);
        }
        let is_next = self.handed == self.tail.len();
        self.tail.push(entry, bytes.len());
        if is_next && self.has_room() {
            self.hand(bytes, cx);
        }
        invariant!(self.handed <= self.tail.len(), "only what there is was handed on");
    }

    /// Whether the log may be handed one entry more.
    fn has_room(&self) -> bool {
        self.handed < rules::IN_FLIGHT_MAX && self.handed_bytes < rules::IN_FLIGHT_BYTES_MAX
    }

    fn hand(&mut self, entry: Bytes, cx: &mut Context<'_>) {
        self.handed += 1;
        self.handed_bytes += entry.len();
        cx.out.push(Action::Propose(entry));
    }

    /// Hands on what waits for room in the log: one alone, after it has refused some.
    pub fn hand_on(&mut self, cx: &mut Context<'_>) {
        let mut most = if core::mem::take(&mut self.is_refused) { 1 } else { usize::MAX };
        while most > 0
            && self.has_room()
            && let Some((entry, _)) = self.tail.get(self.handed)
        {
            let bytes = entry.bytes();
            self.hand(bytes, cx);
            most -= 1;
        }
    }

    /// The log has not taken the last ones: they are not in it, and are handed on again later.
    pub fn not_taken(&mut self, count: usize) {
        invariant!(count <= self.handed, "only what was handed on is refused");
        if mutant!("txn_refused_is_in_the_log") {
            return;
        }
        self.is_refused = true;
        for _ in 0..count {
            self.handed -= 1;
            let (_, bytes) = self.tail.get(self.handed).expect("it was handed on");
            self.handed_bytes -= bytes;
        }
        invariant!(self.handed < self.tail.len() || count == 0, "it waits for room");
    }
}
