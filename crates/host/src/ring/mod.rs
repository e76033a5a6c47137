//! What the server knows and shows of the ring, beside the protocols that keep it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`founding`] | the ring and the keyspaces of a data directory |
//! | [`report`] | [`Report`]: what one host says of the ring, and how a read was served |

pub mod founding;
pub mod report;

pub(crate) use report::meant;
pub use report::{KeyspaceReport, Report, Row};
