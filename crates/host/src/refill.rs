//! When a directory may be told that what a loss of power took is back.

use quorate_kernel::ids::Lsn;

/// How far the keyspaces of this start are with refilling.
#[derive(Debug, Default)]
pub(super) struct Refill {
    /// The newest batch when every keyspace had become ready.
    ready_at: Option<Lsn>,
}

impl Refill {
    /// Whether everything was refilled and is synced. `newest` is the newest batch of the node,
    /// written or not: the one that made the last keyspace ready is no later.
    pub fn is_done(&mut self, all_ready: bool, newest: Lsn, synced: Lsn) -> bool {
        if !all_ready {
            self.ready_at = None;
            return false;
        }
        synced >= *self.ready_at.get_or_insert(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refilled_counts_once_it_is_synced_whatever_follows() {
        let mut refill = Refill::default();
        assert!(!refill.is_done(false, Lsn(7), Lsn(7)), "a keyspace owes something");
        assert!(
            !refill.is_done(true, Lsn(8), Lsn(7)),
            "the batch that made it ready is on its way"
        );
        assert!(!refill.is_done(true, Lsn(9), Lsn(7)));
        assert!(refill.is_done(true, Lsn(12), Lsn(8)), "it need not be idle");
        assert!(!refill.is_done(false, Lsn(13), Lsn(13)), "another one came");
        assert!(!refill.is_done(true, Lsn(14), Lsn(13)));
        assert!(refill.is_done(true, Lsn(15), Lsn(14)));
    }
}
