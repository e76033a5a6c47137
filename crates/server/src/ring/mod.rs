//! What the server knows and shows of the ring, beside the protocols that keep it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tokens`] | where hosts stand on the ring when a cluster is born, and when one joins |
//! | [`founding`] | the ring and the keyspaces of a data directory |

pub mod founding;
pub mod tokens;
