//! Operations whose keys have moved to other groups: they are asked of those.

use super::in_hand::{Doing, Phase};
use crate::serializable::lane::places::homes::Homes;
use crate::serializable::lane::{Context, Serializable};
use alloc::vec::Vec;
use quorate_kernel::probe;

impl Doing {
    /// Whether a group is asked for a key that another one has by now. What commits is not looked
    /// at: it keeps to its groups, which say how it ends.
    fn is_misplaced(&self, homes: &Homes) -> bool {
        match &self.phase {
            Phase::Reading(waits) => {
                waits.iter().any(|(group, keys)| keys.iter().any(|it| homes.group_of(it) != *group))
            }
            Phase::Checking(waits) => {
                waits.iter().any(|(group, keys)| keys.keys().any(|it| homes.group_of(it) != *group))
            }
            Phase::Listing { group, from, .. } => homes.group_of(from) != *group,
            Phase::Committing { .. } | Phase::Asking(_) | Phase::Recalling(_) => false,
        }
    }
}

impl Serializable {
    /// A group has said that a key is of another: if it is known of which, that one is asked.
    /// Nothing was changed.
    pub(crate) fn place_again(&mut self, question: u64, cx: &mut Context<'_>) {
        let doing = self.clients.get(question);
        if !doing.is_some_and(|doing| doing.is_misplaced(&self.homes)) {
            return;
        }
        let Some(mut doing) = self.clients.remove(question) else { return };
        probe!("serializable/lane_placed_again");
        if let Phase::Listing { group, from, .. } = &mut doing.phase {
            *group = self.homes.group_of(from);
            return self.go_on(doing, cx);
        }
        // What was read elsewhere need not fit what is read now.
        self.attempt(doing, cx);
    }

    /// It is known that buckets have moved.
    pub(crate) fn place_all_again(&mut self, cx: &mut Context<'_>) {
        let questions: Vec<u64> = self.clients.questions().collect();
        questions.into_iter().for_each(|question| self.place_again(question, cx));
    }
}
