//! Buckets that move from group to group while transactions run.
//!
//! A **bucket** is the first byte of a stored key: one of 256. Which group has it is a fact of the
//! groups' logs: the founding placement first, and what these entries have made of it since. Each
//! switch has a version, and the highest version says where a bucket is.
//!
//! ```text
//! target: logs Arriving                     the bucket is expected here, and requests wait
//!         ── Pull ─▶ source ── Page ─▶      target logs Arrived: keys with versions
//!         logs Passed                       all that there was when the pass began
//!         ...                               again, until a pass has brought little
//!         ── Pull, release ─▶ source        takes nothing new on the bucket, waits for its locks
//!         source logs Release               from here on the bucket is the target's
//!         ◀── Gone ── source                again until it is answered
//!         ── Pull ─▶ source ── Page ─▶      target logs Arrived: what has changed since
//!         logs Take                         the target serves
//!         ── Took ─▶ source: logs Let       what the source keeps is cleared, some keys at a time
//! ```
//!
//! # What moves, and what waits
//! - **Values, versions, writers, expiries and tombstones** are in the pages. The floor comes with
//!   Take, so that an absent key has no lower version than it had.
//! - **Locks, votes, undecided transactions**: Release waits until nobody holds a key of the
//!   bucket; the primary begins nothing on it meanwhile, for a second at most, and tries again
//!   later. So a transaction of a group that stands still delays the move, and not others for long.
//! - **A source** hands a bucket over to the group that it should be of, as far as its lane knows:
//!   else it would go to and fro while hosts do not agree on the number of groups.
//! - **Outcomes** stay with the group that has logged them. A name is bound to its groups: whoever
//!   asks again under it asks the same groups for the same shares, wherever the keys are by then,
//!   and is answered from the outcome. A group that has none logs that the transaction has failed
//!   ([`crate::serializable::Cause::Moved`]), whenever that request comes and wherever the bucket
//!   goes later; then the host tries again under another name, by the new placement. A group that
//!   has no bucket any more stays, for those who ask.
//!
//! # Why it is right
//! - Between Release and Take nobody serves the bucket. Take rests on pages that the source has
//!   read after Release was committed, and nothing changes a bucket that is not here.
//! - A pass that begins at one entry of the source brings all that it had by then; the next pass
//!   what later entries have changed. Pages are taken in order, and none that is older than the
//!   first of its pass.
//! - A purge drops what a pass would have to bring. Its place in the source's log is kept for each
//!   bucket, and each page tells it: if there was one since the first pass began, the copy is begun
//!   anew, and the bucket stays where it is until then. The floor does not show it: what is purged
//!   need not have a version above that.
//! - After a loss the source counts its places anew: what it writes then may stand where the copy
//!   has something that is lost. So what is told of a purge names the life of the log, too, and in
//!   another life the copy is begun anew. So does the name of a copy, of the target's log.
//! - If the bucket is handed over within a pass, that is begun anew, with what is at rest.
//! - Of an earlier copy no page is taken: each copy has a name of its own, the life and place of
//!   its entry.
//! - A copy begins where no key of the bucket is left of an earlier stay.
//! - All of it is logged or asked again, so it goes on with another primary on either side.
//!
//! | file | what it holds |
//! |---|---|
//! | `places.rs` | where buckets are, as a group's log has it |
//! | `step.rs`, `apply.rs` | entries, and executing them |
//! | `said.rs` | what groups say to each other |
//! | `moving.rs`, `target.rs`, `source.rs` | what a primary has in hand, on either side |
//! | `cleared.rs` | what is left where a bucket is not |

mod apply;
mod cleared;
pub(super) mod moving;
pub(super) mod places;
pub(super) mod said;
mod source;
pub(super) mod step;
mod target;

pub use places::{Arrival, Moved, Moves, bucket_of};
pub use said::Said;
pub use step::Step;
