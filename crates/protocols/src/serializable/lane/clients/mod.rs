//! Clients of this host: what they have in hand, from what they ask to what they are told.

mod acts;
mod begin;
mod ended;
mod hear;
pub(super) mod in_hand;
mod items;
mod moved;
mod names;
