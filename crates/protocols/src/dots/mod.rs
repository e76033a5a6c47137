//! Dots and what is made of them: node clocks, causal contexts, objects (DottedDB §IV).
//!
//! From R. Gonçalves, P. S. Almeida, C. Baquero, V. Fonte, "DottedDB: Anti-Entropy without Merkle
//! Trees, Deletes without Tombstones" (SRDS 2017). Every update has a **dot**. A replica keeps one
//! **clock** of all dots it has seen, and an **object** keeps of its causal past only what that
//! clock does not say anyway: **strip** takes out what it says, **fill** puts it back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`dot`] | partitions, actors, dots |
//! | [`clock`] | the node clock: a base and ranges for each actor |
//! | [`context`] | the causal context of an object, or of a client |
//! | [`object`] | versions and context; merge, fill, strip, fold |
//! | [`sorted`] | a map of few entries |
//! | [`dot_keys`] | the dot-key map |
//! | [`watermark`] | what each peer is known to have seen |

pub mod clock;
pub mod context;
pub mod dot;
pub mod dot_keys;
pub mod object;
pub mod sorted;
#[cfg(test)]
mod tests;
pub mod watermark;
