//! Where keys are: the groups that hold them, and which of these are out of reach.

pub(super) mod homes;
pub(super) mod place;
pub(super) mod reach;
pub(super) mod spread;
