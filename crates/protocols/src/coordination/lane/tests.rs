//! Tests of the lane.
