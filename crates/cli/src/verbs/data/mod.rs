//! Verbs about data: keys, values, and how an operation was served.

pub mod explain;
pub mod scan;
pub mod values;
