//! Records that other members have, stored here although nobody asked this member to: what a
//! comparison or a get found that it had missed. [`super::compare`] says why that does no harm.

use super::replica::{may_rest_on, newest};
use crate::linearizable::group::Group;
use crate::linearizable::message::Basis;
use crate::linearizable::record::Record;
use crate::linearizable::{Context, Linearizable};
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// Whether what was read of other members on this basis may be stored here.
    pub(crate) fn may_restore(&self, view: ViewId, basis: &Basis) -> bool {
        let may_store = |group: &Group| {
            let may_rest = may_rest_on(group, basis) || mutant!("restore_without_fence");
            group.view.id == view && group.is_whole() && may_rest
        };
        self.group(view).is_some_and(may_store)
    }

    /// A get of this node found this record at a majority, and an older one here, or none. It is
    /// stored for the gets that follow: they ask other members for a value only if it is not here.
    pub(crate) fn catch_up(
        &mut self,
        view: ViewId,
        key: &Bytes,
        (record, basis): (Record, &Basis),
        cx: &mut Context<'_>,
    ) {
        let may_restore = self.may_restore(view, basis) || mutant!("catches_up_without_fence");
        let stored = self.stored_key(view, key).filter(|_| may_restore);
        // Gets of one key may end at one moment, and need not have found the same.
        let is_written =
            |stored: &Bytes| cx.fx.is_written(stored) && !mutant!("catches_up_twice_at_once");
        let stored = stored.filter(|stored| !is_written(stored));
        if let Some(stored) = stored {
            probe!("linearizable/catch_up");
            self.restore(view, &stored, record, cx);
        }
    }

    /// Stores what another member has, as what a get imposes would be.
    pub(crate) fn restore(
        &mut self,
        view: ViewId,
        stored: &Bytes,
        record: Record,
        cx: &mut Context<'_>,
    ) {
        let head = record.head();
        if !head.live
            && let Some(group) = self.group_mut(view)
        {
            group.purge.note_tombstone();
        }
        if self.store(stored, record, cx) {
            probe!("linearizable/restored");
            self.volatile.counters.restored += 1;
        } else {
            assert!(newest(stored, cx).ts >= head.ts, "the newest of a key is kept (I6)");
        }
    }
}
