//! The ring's pointers: for each own token its predecessor and its next successors.
//!
//! Stabilization is Chord's (Stoica et al., 2003) with the corrections of Zave, "Reasoning about
//! identifier spaces: how to make Chord correct" (2017): whether a node lives is asked before its
//! pointer is taken, a successor list is replaced as a whole by what the successor says, and it
//! never shrinks to nothing while others are known. Stabilizing also notifies: who asks about a
//! token offers itself as its predecessor. After a partition, [`unification`] makes one ring of
//! two.
//!
//! The pointers say whom to watch; they are hints. Which nodes hold a key is decided by group views
//! (CATS §5).
//!
//! | file | what it is |
//! |---|---|
//! | [`pointers`] | predecessor and successors of one token |
//! | [`stabilize`] | those of all tokens of a node, and what nodes ask each other about them |
//! | [`unification`] | the passive list, and who is told of a node from the other ring |

pub mod pointers;
pub mod stabilize;
#[cfg(test)]
mod tests;
pub mod unification;
