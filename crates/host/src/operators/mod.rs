//! What operators ask of a running host, and what it and its lanes show of themselves.
//!
//! | file | what it holds |
//! |---|---|
//! | `requests.rs` | what is asked, and what is told |
//! | `answers.rs` | who answers it, on the core thread |
//! | `show.rs` | what lanes show of their state |

pub(super) mod answers;
pub(super) mod requests;
pub(super) mod show;
