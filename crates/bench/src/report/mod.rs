//! What a run found: counts as it happens, then numbers, text and charts.

pub(super) mod disks;
pub(super) mod findings;
pub(super) mod gaps;
pub(super) mod longest;
pub(super) mod plot;
pub(super) mod record;
pub(super) mod spread;
pub(super) mod usage;
