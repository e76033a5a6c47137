//! What was applied: in memory first, then in tables that are sorted and merged.
//!
//! | file | what it holds |
//! |---|---|
//! | `memtable.rs` | what was applied and is not in the tables yet |
//! | `backlog.rs` | what lies between the two threads: full memtables, free segments |
//! | `lsm.rs` | the tables, over fjall |
//! | `lists.rs` | the lists of them on disk, looked at before fjall is |
//! | `view.rs` | the tables as of some moment, at hand for reads |
//! | `merges.rs` | the threads that merge tables |
//! | `reclaim.rs` | space that deleted records take |

pub(super) mod backlog;
pub(super) mod lists;
pub(super) mod lsm;
pub(super) mod memtable;
pub(super) mod merges;
pub(super) mod reclaim;
pub(super) mod view;
