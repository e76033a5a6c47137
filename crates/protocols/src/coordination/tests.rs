//! Tests of the engine: golden scripts, and hosts that run it as nodes do.

mod golden;
