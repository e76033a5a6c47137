//! Servers that are measured in turn: two that are compared, or any number whose cost is asked.

pub(super) mod ceiling;
pub(super) mod ceiling_args;
pub(super) mod child;
pub(super) mod compare;
pub(super) mod compare_args;
pub(super) mod turns;
