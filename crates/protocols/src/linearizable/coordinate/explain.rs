//! What happened to one operation, for an operator who asks (`explain`), or who answered it.

use crate::linearizable::group::Standing;
use crate::linearizable::message::Stamp;
use crate::linearizable::record::Head;
use crate::linearizable::{Context, Linearizable};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::explanation::{Explanation, Step};
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Request;
use quorate_kernel::time::Time;
use quorate_kernel::view::View;

/// What was noted so far.
#[derive(Debug)]
pub(crate) struct Trail {
    pub tells: Tells,
    began: Time,
    steps: Vec<Step>,
    /// The members whose answers it could rest on: they have all that they have to hold.
    answered: Vec<NodeId>,
}

/// What an operator wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// How a read was served.
    How,
    /// Who holds the group that was asked, and what keeps a host that leaves.
    Who {
        /// That host.
        leaver: Option<NodeId>,
    },
}

impl Trail {
    /// Nothing happened yet.
    pub fn from(tells: Tells, began: Time) -> Trail {
        Trail { tells, began, steps: Vec::new(), answered: Vec::new() }
    }

    /// Notes a step.
    pub fn note(&mut self, now: Time, member: Option<NodeId>, what: String) {
        self.steps.push(Step { after: now - self.began, member, what });
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
        if stamp.standing == Standing::Ready && !self.answered.contains(&member) {
            self.answered.push(member);
        }
    }

    /// The answer to who asked.
    pub fn explain(
        mut self,
        view: &View,
        token: u64,
        outcome: Outcome,
        cx: &Context<'_>,
    ) -> Outcome {
        let values = match outcome {
            Outcome::Values { values, .. } => values,
            other => return other,
        };
        self.note(cx.now, None, String::from("done"));
        Outcome::Explained(Box::new(Explanation {
            value_bytes: (!values.is_empty()).then(|| values.bytes()),
            token,
            coordinator: cx.me,
            view: view.clone(),
            answered: self.answered,
            steps: self.steps,
        }))
    }
}

impl Linearizable {
    /// Serves a get, or asks for who holds a group, and tells what an operator wants to know of it.
    pub(crate) fn explain(
        &mut self,
        ticket: Ticket,
        operation: Operation,
        tells: Tells,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let trail = Box::new(Trail::from(tells, cx.now));
        let request = Request { operation, deadline };
        self.begin(ticket, request, Some(trail), cx);
    }
}
