//! What clients are told, and in which order.
//!
//! | file | what it holds |
//! |---|---|
//! | `form` | what answers and events look like |
//! | `queue` | the order in which they leave |
//! | `follows` | what an answer begins to follow, on which that depends |

pub(crate) mod follows;
pub(crate) mod form;
pub(crate) mod queue;
