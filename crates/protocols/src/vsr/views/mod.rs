//! Who leads and who takes part: the primary's beats, and changes of the view and of the epoch.

mod epoch;
mod lost_begin;
pub(super) mod pulse;
mod view_change;
