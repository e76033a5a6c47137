//! Asking a newcomer before it is made a member of the system group: the ring says that a host is
//! there until it is suspected, and one that has just started suspects nobody.

use super::chain::decree::Decree;
use super::message::{Message, Purpose};
use super::state::Want;
use super::{CatalogLane, Context};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// A newcomer that was asked in the last period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    node: NodeId,
    question: u64,
    has_answered: bool,
}

impl CatalogLane {
    /// What of this is to be done now: a newcomer is asked in one period and proposed in the next,
    /// if it has answered meanwhile. What it said earlier may have been long under way.
    pub(super) fn admitted(&mut self, wants: Vec<Want>, cx: &mut Context<'_>) -> Vec<Want> {
        let asked = self.state.newcomer.take();
        let newcomer = match &wants[..] {
            [Want::Due(Decree::Members(change))] => change.newcomer(),
            _ => None,
        };
        let Some(node) = newcomer else { return wants };
        let is_here = asked.is_some_and(|asked| asked.node == node && asked.has_answered);
        if is_here || mutant!("catalog_newcomer_unheard") {
            return wants;
        }
        self.state.questions += 1;
        let (question, version) = (self.state.questions, self.state.version());
        self.state.newcomer = Some(Newcomer { node, question, has_answered: false });
        cx.fx.send(node, Message::Length { version, purpose: Purpose::Ask(question) });
        Vec::new()
    }

    /// A node replies to a question.
    pub(super) fn on_newcomer(&mut self, node: NodeId, question: u64) {
        let Some(newcomer) = &mut self.state.newcomer else { return };
        invariant!(newcomer.question <= self.state.questions, "what is open was asked");
        invariant!(self.state.stored.catalog.is_some(), "who admits knows the members");
        if (newcomer.node, newcomer.question) == (node, question) {
            probe!("catalog/newcomer");
            newcomer.has_answered = true;
        }
    }
}
