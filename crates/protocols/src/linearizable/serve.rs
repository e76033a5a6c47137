//! What a source does for transfers, and for members that compare: questions wait in line, and are
//! answered in small pieces that leave room for clients.
//!
//! In one turn no more is done than clients can wait for; the rest follows in later turns, between
//! which the host reads its clients, and after a pause if operations have become slow
//! ([`super::courtesy`]).

use super::courtesy::Courtesy;
use super::timer::Timer;
use super::{Context, Linearizable};
use alloc::collections::VecDeque;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::{SERVING_MAX, TURN_BYTES_MAX};
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::ViewId;

/// What a node asks that lacks data, or may lack some.
#[derive(Clone, Debug)]
pub(super) enum Question {
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

impl Question {
    /// Whether this is the other one, asked again, or what is asked in its place.
    fn replaces(&self, other: &Question) -> bool {
        match (self, other) {
            (Question::List { since, .. }, Question::List { since: other, .. })
            | (Question::Fetch { since, .. }, Question::Fetch { since: other, .. }) => {
                since.group == other.group
            }
            (Question::Compare { .. }, Question::Compare { .. })
            | (Question::Records { .. }, Question::Records { .. }) => true,
            _ => false,
        }
    }
}

/// The questions that wait.
#[derive(Debug, Default)]
pub(super) struct Serving {
    waiting: VecDeque<(Incarnation, Question)>,
    /// About how many bytes were handled since the last pause.
    spent: usize,
    /// Nothing is done before.
    next_at: Time,
    pub courtesy: Courtesy,
}

impl Serving {
    /// Puts a question in line. Each asker has one of each kind there for each group, or one if it
    /// compares: it asks for the next piece when it has the last one, or again when it has waited
    /// too long.
    fn push(&mut self, asker: Incarnation, question: Question) {
        let is_same = |(other, waiting): &&mut (Incarnation, Question)| {
            other.node == asker.node && question.replaces(waiting)
        };
        if let Some(place) = self.waiting.iter_mut().find(is_same) {
            *place = (asker, question);
        } else if self.waiting.len() < SERVING_MAX {
            self.waiting.push_back((asker, question));
        }
    }

    /// So many bytes were handled.
    fn spend(&mut self, bytes: usize, now: Time) {
        self.spent += bytes;
        if self.spent >= TURN_BYTES_MAX {
            self.spent = 0;
            // The next turn is the soonest.
            self.next_at = now + self.courtesy.pause(now).max(Span(1));
        }
    }
}

impl Linearizable {
    /// A node that lacks data asks.
    pub(super) fn on_question(
        &mut self,
        asker: Incarnation,
        question: Question,
        cx: &mut Context<'_>,
    ) {
        self.volatile.serving.push(asker, question);
        self.serve(cx);
    }

    /// Answers as many questions as may be answered now.
    pub(super) fn serve(&mut self, cx: &mut Context<'_>) {
        while cx.now >= self.volatile.serving.next_at
            && let Some((asker, question)) = self.volatile.serving.waiting.pop_front()
        {
            let bytes = self.answer_question(asker, question, cx);
            self.volatile.serving.spend(bytes, cx.now);
        }
        let serving = &self.volatile.serving;
        if !serving.waiting.is_empty() {
            probe!("linearizable/transfer_yields");
            cx.fx.arm(Timer::Serve, serving.next_at);
        }
    }
}
