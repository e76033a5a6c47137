//! What the tests share: processes, clients that work while they are harmed, and damage.

pub(super) mod client;
pub(super) mod cluster;
pub(super) mod crew;
pub(super) mod load;
pub(super) mod logged;
pub(super) mod ports;
pub(super) mod run;
