//! Many seeds: each is run, traced and judged, and what fails is reduced and kept.

pub mod marks;
pub mod replay;
pub mod run;
pub mod seed;
pub mod shrink;
pub mod summary;
pub mod trace;
