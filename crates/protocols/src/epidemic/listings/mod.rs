//! Listings of keys: an entry goes from one part of the positions to the next, and asks of each one
//! member that has all of it.
//!
//! ```text
//! entry ── ListA(place) ─▶ a member    which keys are there from this place on?
//! entry ◀── ListB(page) ── the member  some of them, and where it goes on; or that it has not all
//! ```
//! A page is what one member has, from where it was asked for to where it ends; the next one begins
//! there. What the member is ready for decides where that may be at most, and not what the entry
//! takes for a slice. So whatever becomes of slices while a client pages, no position is left out:
//! a key that all members of its slice have throughout is listed, once.
//!
//! Nothing waits for the order. What has not come to the member that answers is missing, and what
//! it has not heard to be deleted is listed still. Who is in doubt of a part is asked only when all
//! that are known have been, and none of them is ready and without doubt.

mod entry;
mod member;
mod page;

pub use entry::Listings;
pub(in crate::epidemic) use page::cut_before;
pub use page::{ListA, ListB, Listed};
