//! What a source answers for transfers, and for members that compare, at the pace that clients
//! leave it ([`crate::pacing`]).

use crate::linearizable::timer::Timer;
use crate::linearizable::{Context, Linearizable};
use crate::pacing;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::SERVING_MAX;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

/// What a node asks that lacks data, or may lack some.
#[derive(Clone, Debug)]
pub(crate) enum TransferRequest {
    /// What is there from a cursor on?
    List {
        /// Echoed.
        round: u64,
        /// Echoed.
        since: ViewId,
        /// From where on.
        from: Cursor,
    },
    /// The records of these keys.
    Fetch {
        /// Echoed.
        round: u64,
        /// Echoed.
        since: ViewId,
        /// The keys, with heads.
        page: Bytes,
    },
    /// What differs from this piece?
    Compare {
        /// Echoed.
        round: u64,
        /// Echoed.
        view: ViewId,
        /// Where the piece begins.
        from: Bytes,
        /// Its parts.
        parts: Bytes,
    },
    /// The records of these keys, for a member that compares.
    Records {
        /// Echoed.
        round: u64,
        /// Echoed.
        view: ViewId,
        /// The keys, with heads.
        page: Bytes,
    },
}

/// Each asker has one of each kind in line for each group, or one if it compares.
impl pacing::Pending for TransferRequest {
    fn replaces(&self, other: &TransferRequest) -> bool {
        use TransferRequest::{Compare, Fetch, List, Records};
        match (self, other) {
            (List { since, .. }, List { since: other, .. })
            | (Fetch { since, .. }, Fetch { since: other, .. }) => since.group == other.group,
            (Compare { .. }, Compare { .. }) | (Records { .. }, Records { .. }) => true,
            _ => false,
        }
    }
}

impl Linearizable {
    /// A node that lacks data asks.
    pub(crate) fn on_question(
        &mut self,
        asker: Incarnation,
        question: TransferRequest,
        cx: &mut Context<'_>,
    ) {
        self.volatile.serving.push(asker, question);
        let waiting = self.volatile.serving.waiting();
        invariant!(waiting <= SERVING_MAX, "what waits in line is bounded");
        self.serve(cx);
        let due_at = self.volatile.serving.due_at();
        invariant!(due_at.is_none_or(|at| at > cx.now), "what may be answered now is answered");
    }

    /// Answers as many questions as may be answered now.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>) {
        while let Some((asker, question)) = self.volatile.serving.next(cx.now) {
            let bytes = self.answer_question(asker, question, cx);
            self.volatile.serving.spend(bytes, cx.now);
        }
        if let Some(at) = self.volatile.serving.due_at() {
            probe!("linearizable/transfer_yields");
            cx.fx.arm(Timer::Serve, at);
        }
    }
}
