//! What is known to go wrong in implementations of the protocol, one trap a test.

mod acknowledgements;
mod bounds;
mod chosen;
mod copies;
mod earlier;
mod elections;
mod ended;
mod epochs;
mod held;
mod left;
mod losses;
mod nonsense;
mod reads;
mod truncation;
mod unheard;
