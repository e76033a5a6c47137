//! The tables: how large, under which keys, as which bytes, and what they begin with.

pub mod draws;
pub mod keys;
pub mod population;
pub mod rows;
pub mod sizes;
