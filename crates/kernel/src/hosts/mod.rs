//! Hosts: who is there, who holds what, and what each has seen of the others.

pub mod part;
pub mod ring;
pub mod roll;
pub mod sighting;
pub mod view;
