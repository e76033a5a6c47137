//! Random schedules in a small world, and the judge of what its clients were told.

mod chaos;
pub(super) mod rings;
mod told_views;
