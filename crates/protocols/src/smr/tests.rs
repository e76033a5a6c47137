//! Tests of the building block, with a machine of numbers.

mod answers;
mod changes;
mod copies;
mod early;
pub(crate) mod member;
mod numbers;
mod once;
mod sees;
mod stored;
