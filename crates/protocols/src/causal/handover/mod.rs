//! How a partition changes hosts: newer maps, who copies, who hands over, and what becomes of
//! actors that are gone.

pub(crate) mod former;
mod heard;
pub(crate) mod join;
pub(crate) mod leave;
mod moves;
pub(crate) mod retire;
mod scan;
