//! The ordered path: what is broadcast, and what is done when its turn comes.

pub mod batch;
pub mod deliver;
pub mod holes;
pub mod past;
