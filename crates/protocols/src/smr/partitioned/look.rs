//! Questions that are answered by what is here, without being ordered.

use super::command::{Addressed, Answered};
use super::execution::Variables;
use super::machine::Machine;
use super::replica::Replica;
use crate::multicast::Slot;
use quorate_kernel::invariant;

impl<M: Machine> Replica<M> {
    /// Whether it has executed all that its rings decide before a slot.
    #[must_use]
    pub fn has_executed(&self, until: Slot) -> bool {
        self.rest_is_empty() && self.has_delivered(until)
    }

    /// What a question of this partition alone would be answered if it were executed now. Nothing
    /// of it takes effect, and it is not remembered: asked again it may be answered otherwise.
    ///
    /// # Panics
    /// It is no question, or is of other partitions.
    #[must_use]
    pub fn look(&self, question: &Addressed<M>) -> Answered<M> {
        let is_alone = question.destinations.iter().eq([self.here]);
        invariant!(is_alone && M::is_question(&question.command), "it is asked for what is here");
        if !self.is_current(question) {
            return Answered::Retry(self.state.placement.version());
        }
        let outcome = self.run(question, Variables::<M>::new()).outcome;
        let outcome = outcome.unwrap_or_else(|lacks| unreachable!("{lacks:?} is elsewhere"));
        invariant!(outcome.written.is_empty(), "a question changes nothing");
        outcome.answer
    }
}
