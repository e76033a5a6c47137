//! Consistent quorums.
