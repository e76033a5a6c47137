//! What the paper has beside its algorithms (§5), to measure what each of it is worth.

/// Which optimizations there are. Whatever is left out, what is promised stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimizations {
    /// *Fast aborts*: who rests on a version that has gone has failed at once. Without them it
    /// waits for its keys first.
    pub fast_aborts: bool,
    /// *Read-write locks*: who only rests on a key holds it together with others that do. Without
    /// them everybody holds keys alone.
    pub shared_locks: bool,
}

impl Default for Optimizations {
    fn default() -> Optimizations {
        Optimizations { fast_aborts: true, shared_locks: true }
    }
}
