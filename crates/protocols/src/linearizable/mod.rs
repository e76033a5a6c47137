//! Engine `linearizable`.
use alloc::boxed::Box;
use quorate_kernel::lane::Lane;
use quorate_kernel::view::View;
/// Settings of one keyspace.
#[derive(Clone, Debug)]
pub struct Settings {
    /// First view.
    pub first_view: View,
    /// Longest value.
    pub value_bytes_max: usize,
    /// Digest reads.
    pub digest_reads: bool,
}
/// The lane.
#[must_use]
pub fn lane(_settings: Settings) -> Box<dyn Lane> {
    panic!()
}
