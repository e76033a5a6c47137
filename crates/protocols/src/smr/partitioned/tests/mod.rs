//! Tests of the partitioned machine, with a machine of letters.

mod atomic;
mod caches;
mod cluster;
mod digest;
mod exchange;
mod kept;
pub(crate) mod letters;
mod moves;
mod once;
mod restart;
mod sees;
