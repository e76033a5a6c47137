//! Groups whose members change: hosts that come, leave or are removed, and groups that are split.

mod departures;
mod drains;
mod invitations;
mod members;
mod out_of_reach;
mod outpaced;
mod owed;
mod pairs;
mod parents;
mod removals;
mod splits;
