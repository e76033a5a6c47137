//! Slots that were given up are emptied little by little, so that clients hardly notice, also after
//! a restart.

use crate::linearizable::keys::{Slot, garbage_key, segments, token_of};
use crate::linearizable::timer::Timer;
use crate::linearizable::{Context, Linearizable};
use crate::pacing::piece::Piece;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::probe;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;
use quorate_kernel::view::{Range, View};

/// How long a slot that was given up is left alone before it is emptied, and between two pieces.
const SWEEP_AFTER: Span = Span::millis(12);

/// How far slots are emptied.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The slot and range being emptied, and the stored key up to which nothing is left.
    reached: Option<(Slot, Range, Bytes)>,
    is_armed: bool,
}

impl Linearizable {
    /// Gives a slot's range up: it is emptied from now on.
    pub(crate) fn discard(&mut self, slot: Slot, view: &View, cx: &mut Context<'_>) {
        self.durable.garbage.insert((slot, view.range));
        cx.fx.put_state(garbage_key(slot, &view.range), Bytes::from_static(b"\x01"));
        self.sweep_soon(cx);
    }

    /// Goes on with what an earlier start has left.
    pub(crate) fn sweep_rest(&mut self, cx: &mut Context<'_>) {
        if !self.durable.garbage.is_empty() {
            self.sweep_soon(cx);
        }
    }

    fn sweep_soon(&mut self, cx: &mut Context<'_>) {
        if !core::mem::replace(&mut self.volatile.sweep.is_armed, true) {
            cx.fx.arm(Timer::Sweep, cx.now + SWEEP_AFTER);
        }
    }

    /// Empties one more piece.
    pub(crate) fn on_sweep(&mut self, cx: &mut Context<'_>) {
        self.volatile.sweep.is_armed = false;
        let Some((slot, range)) = self.durable.garbage.first().copied() else { return };
        // Nothing is written to a slot that was given up. To look for its first key again and again
        // would be dear: a store passes everything that was deleted there.
        let reached = self.volatile.sweep.reached.take();
        let reached = reached.filter(|(s, r, _)| (*s, *r) == (slot, range)).map(|(.., key)| key);
        let doomed = doomed(slot, &range, reached.as_ref(), cx.table);
        let Some(last) = doomed.last() else {
            probe!("linearizable/swept");
            self.durable.garbage.remove(&(slot, range));
            cx.fx.delete_state(garbage_key(slot, &range));
            return self.sweep_rest(cx);
        };
        self.volatile.sweep.reached = Some((slot, range, last.clone()));
        for stored in doomed {
            cx.fx.delete(stored);
        }
        self.sweep_soon(cx);
    }
}

/// The next keys of a slot to be deleted.
fn doomed(slot: Slot, range: &Range, reached: Option<&Bytes>, table: &dyn Table) -> Vec<Bytes> {
    let mut piece = Piece::default();
    let at = reached.and_then(|stored| slot.data_key(stored)).map(token_of);
    let is_before =
        |(first, last): &(u64, u64)| at.is_some_and(|at| !(*first..=*last).contains(&at));
    for (first, last) in segments(range).skip_while(is_before) {
        let inside = reached.filter(|_| at.is_some_and(|at| (first..=last).contains(&at)));
        let from = inside.cloned().unwrap_or_else(|| slot.first_at(first));
        table.scan(Class::Data, &from, &mut |stored, value| {
            let is_inside = slot.data_key(stored).is_some_and(|key| token_of(key) <= last);
            is_inside && piece.take(stored, value)
        });
        if piece.is_full() {
            break;
        }
    }
    piece.into_keys()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::disk::Disk;
    use quorate_kernel::limits::{SWEEP_BYTES_MAX, SWEEP_KEYS_MAX};

    /// How many keys are deleted at a time where each of these tokens has so many, with values of
    /// this length.
    fn pieces(tokens: &[u64], count: u32, value_bytes: usize) -> Vec<usize> {
        // It goes over the end of the ring.
        let range = Range { low: u64::MAX - 10, high: 10 };
        let mut disk = Disk::new(false, false);
        let value = Bytes::from(alloc::vec![0; value_bytes]);
        for (slot, tokens) in [(Slot(6), tokens), (Slot(7), tokens), (Slot(7), &[11][..])] {
            for (token, key) in tokens.iter().flat_map(|token| (0..count).map(move |n| (token, n)))
            {
                let key = [token.to_be_bytes().as_slice(), &key.to_be_bytes()].concat();
                disk.write(Class::Data, &slot.stored(&key), Some(&value));
            }
        }
        let (before, mut pieces, mut reached) = (disk.keys(), Vec::new(), None);
        loop {
            let keys = doomed(Slot(7), &range, reached.as_ref(), &disk);
            let Some(last) = keys.last().cloned() else { break };
            pieces.push(keys.len());
            reached = Some(last);
            keys.iter().for_each(|key| disk.write(Class::Data, key, None));
        }
        let gone = tokens.len() * count as usize;
        assert_eq!(before - disk.keys(), gone, "all of the range, and nothing else");
        pieces
    }

    #[test]
    fn what_was_given_up_is_deleted_in_pieces_of_some_keys_and_bytes() {
        assert_eq!(pieces(&[9, u64::MAX], 0, 10), []);
        let rest = 600 - 2 * SWEEP_KEYS_MAX;
        assert_eq!(pieces(&[9, u64::MAX], 300, 10), [SWEEP_KEYS_MAX, SWEEP_KEYS_MAX, rest]);
        assert_eq!(pieces(&[9, u64::MAX], 5, SWEEP_BYTES_MAX / 4), [4, 4, 2]);
        assert_eq!(pieces(&[9, u64::MAX], 1, 2 * SWEEP_BYTES_MAX), [1, 1]);
    }
}
