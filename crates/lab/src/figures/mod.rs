//! The figures of CATS: what each measures, and what it needs to know of real hosts.

pub mod calibrate;
pub mod cats;
pub mod elastic;
pub mod load;
pub mod paired;
pub mod price;
pub mod scale;
pub mod stamps;
