//! What operators ask of all hosts: to let one go, and to shut the cluster down.

mod control;
pub(crate) mod shutdown;
