//! Tests of the tree, which clients ask through entries of a log.

mod kinds;
mod life;
mod lists;
pub(crate) mod model;
mod nodes;
mod quotas;
pub(crate) mod random;
mod reads;
mod replicas;
mod sessions;
mod sound;
mod together;
pub(crate) mod world;
