//! Tests of the tree, which clients ask through entries of a log.

mod kinds;
mod life;
mod lists;
mod model;
mod nodes;
mod random;
mod reads;
mod replicas;
mod sessions;
mod sound;
mod together;
pub(crate) mod world;
