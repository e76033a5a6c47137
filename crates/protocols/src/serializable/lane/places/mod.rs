//! Where keys are: the groups that hold them, who founds these, and where their primaries are.

pub(super) mod place;
pub(super) mod reach;
pub(super) mod routes;
pub(super) mod seats;
