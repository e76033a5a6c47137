//! Where hosts stand on the ring: at first, and later, when the load is evened out.

pub mod balance;
pub mod places;
pub mod weights;
