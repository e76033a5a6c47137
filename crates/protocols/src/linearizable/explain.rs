//! What happened to one operation, for an operator who asks (`explain`).

use super::group::Standing;
use super::message::Stamp;
use super::record::Head;
use super::{Context, Linearizable};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::explanation::{Explanation, Step};
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Request;
use quorate_kernel::time::Time;
use quorate_kernel::values::Values;
use quorate_kernel::view::View;

/// What was noted so far.
#[derive(Debug)]
pub(super) struct Trail {
    began: Time,
    steps: Vec<Step>,
    answered: Vec<NodeId>,
}

impl Trail {
    /// Nothing happened yet.
    pub fn from(began: Time) -> Trail {
        Trail { began, steps: Vec::new(), answered: Vec::new() }
    }

    /// Notes a step.
    pub fn note(&mut self, now: Time, member: Option<NodeId>, what: String) {
        self.steps.push(Step { after: now - self.began, member, what });
    }

    /// Notes a member whose answer counts.
    pub fn rests_on(&mut self, member: NodeId) {
        if !self.answered.contains(&member) {
            self.answered.push(member);
        }
    }

    /// Notes a member's answer to a read phase.
    pub fn reply(&mut self, now: Time, member: NodeId, stamp: &Stamp, head: Head) {
        let standing = format!("{:?}", stamp.standing).to_ascii_lowercase();
        let (ts, live) = (head.ts, if head.live { "a value" } else { "no value" });
        let what = format!(
            "answers in view {}, {standing}: {live} at timestamp {}@{}#{}",
            stamp.view.version, ts.n, ts.writer, ts.sequence
        );
        self.note(now, Some(member), what);
        if stamp.standing == Standing::Ready {
            self.rests_on(member);
        }
    }

    /// The answer to who asked.
    pub fn explain(
        mut self,
        view: &View,
        position: u64,
        outcome: Outcome,
        cx: &Context<'_>,
    ) -> Outcome {
        let values = match outcome {
            Outcome::Values { values, .. } => values,
            Outcome::Page { .. } => Values::None,
            other => return other,
        };
        self.note(cx.now, None, String::from("done"));
        Outcome::Explained(Box::new(Explanation {
            value_bytes: (!values.is_empty()).then(|| values.bytes()),
            position,
            coordinator: cx.me,
            view: view.clone(),
            answered: self.answered,
            steps: self.steps,
        }))
    }
}

impl Linearizable {
    /// Serves a get or a page of a scan and tells how.
    pub(super) fn explain(
        &mut self,
        ticket: Ticket,
        operation: Operation,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let trail = Box::new(Trail::from(cx.now));
        let request = Request { operation, deadline };
        self.begin(ticket, request, Some(trail), cx);
    }
}
