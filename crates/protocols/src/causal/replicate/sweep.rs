//! What replicas that were given up have left is deleted little by little, so that clients hardly
//! notice, also after a restart.

use crate::causal::keys::garbage_key;
use crate::causal::timer::Timer;
use crate::causal::{Causal, Context};
use crate::pacing::piece::Piece;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;

/// How long after a piece the next one of the same replica comes.
const SWEEP_AFTER: Span = Span::millis(50);

impl Causal {
    /// Deletes one more piece.
    pub(crate) fn sweep(&mut self, cx: &mut Context<'_>) {
        let Some(birth) = self.durable.garbage.first().copied() else { return };
        // Nothing is written to a part that was given up. To look for its first key again and again
        // would be dear: a store passes everything that was deleted there.
        let reached = self.volatile.swept.take().filter(|(part, _)| *part == birth);
        let from = reached.map_or_else(|| Bytes::copy_from_slice(&birth.to_be_bytes()), |it| it.1);
        let (keys, has_more) = doomed(birth, &from, cx.table);
        if has_more {
            self.volatile.swept = keys.last().map(|last| (birth, last.clone()));
            cx.fx.arm(Timer::Sweep, cx.now + SWEEP_AFTER);
        } else {
            self.durable.garbage.remove(&birth);
            cx.fx.delete_state(garbage_key(birth));
        }
        keys.into_iter().for_each(|key| cx.fx.delete(key));
    }
}

/// The next keys of a part to be deleted, from a key on, and whether there may be more.
fn doomed(birth: u32, from: &[u8], table: &dyn Table) -> (Vec<Bytes>, bool) {
    let mut piece = Piece::default();
    table.scan(Class::Data, from, &mut |key, value| {
        key.starts_with(&birth.to_be_bytes()) && piece.take(key, value)
    });
    let is_full = piece.is_full();
    (piece.into_keys(), is_full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::keys::{Kind, stored};
    use crate::testing::disk::Disk;
    use quorate_kernel::limits::{SWEEP_BYTES_MAX, SWEEP_KEYS_MAX};

    /// How many keys are deleted at a time where a part has so many with values of this length.
    fn pieces(count: u32, value_bytes: usize) -> Vec<usize> {
        let mut disk = Disk::new(false, false);
        let value = Bytes::from(alloc::vec![0; value_bytes]);
        for (birth, count) in [(6, 3), (7, count), (8, 3)] {
            for key in 0..count {
                let key = stored(birth, Kind::Object, &key.to_be_bytes());
                disk.write(Class::Data, &key, Some(&value));
            }
        }
        let (mut pieces, mut from) = (Vec::new(), Bytes::from_static(&[0, 0, 0, 7]));
        loop {
            let (keys, has_more) = doomed(7, &from, &disk);
            pieces.push(keys.len());
            from = keys.last().cloned().unwrap_or(from);
            keys.iter().for_each(|key| disk.write(Class::Data, key, None));
            if !has_more {
                assert_eq!(disk.keys(), 6, "other parts keep what they have");
                return pieces;
            }
        }
    }

    #[test]
    fn what_was_given_up_is_deleted_in_pieces_of_some_keys_and_bytes() {
        assert_eq!(pieces(0, 10), [0]);
        assert_eq!(pieces(600, 10), [SWEEP_KEYS_MAX, SWEEP_KEYS_MAX, 600 - 2 * SWEEP_KEYS_MAX]);
        assert_eq!(pieces(10, SWEEP_BYTES_MAX / 4), [4, 4, 2]);
        assert_eq!(pieces(2, 2 * SWEEP_BYTES_MAX), [1, 1, 0]);
    }
}
