//! Tests of the building block.
