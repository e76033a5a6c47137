//! What operators ask of a running host, and the queue in which it reaches the core thread
//! ([`super::desk`]): the waker is the one that the loop has anyway.

use super::Fault;
use crate::ring::Report;
use bytes::Bytes;
use quorate_kernel::explanation::Explanation;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces};
use quorate_kernel::operation::Refusal;
use quorate_kernel::part::Examination;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::oneshot;

/// What an operator can ask of a running host.
#[derive(Debug)]
pub enum Question {
    /// What it believes of the ring, and the groups it knows.
    Ring,
    /// Read a key, and tell how.
    Explain {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Bytes,
    },
    /// Who holds what.
    Examine {
        /// Of which keyspace; of the system group if none is named.
        keyspace: Option<String>,
        /// From which position on.
        from: u64,
    },
    /// Have a host hand over all it holds, or take part again.
    Drain {
        /// Its node id, address or number.
        host: String,
        /// Whether it shall take part again.
        undo: bool,
    },
    /// Count a host as gone for good.
    Remove {
        /// Its node id, address or number.
        host: String,
        /// Although what nobody else holds is lost with it.
        force: bool,
    },
    /// Which keyspaces there are.
    Keyspaces,
    /// Make, alter or drop a keyspace.
    Keyspace(KeyspaceOrder),
    /// Have another host hold a position of a keyspace.
    Replace {
        /// The keyspace.
        keyspace: String,
        /// Which position.
        position: u32,
        /// The host's node id, address or number.
        host: String,
    },
    /// Have all hosts end at one time.
    Shutdown {
        /// Although that loses what keyspaces keep in memory alone.
        force: bool,
    },
    /// Replace the faults that frames to other hosts meet.
    Faults(BTreeMap<NodeId, Fault>),
}

impl Question {
    /// Whether it may change something after whoever asked was told nothing.
    #[must_use]
    pub fn is_order(&self) -> bool {
        match self {
            Question::Drain { .. }
            | Question::Remove { .. }
            | Question::Keyspace(_)
            | Question::Replace { .. } => true,
            // All hosts end, or this one's faults end with it.
            Question::Shutdown { .. } | Question::Faults(_) => false,
            Question::Ring
            | Question::Explain { .. }
            | Question::Examine { .. }
            | Question::Keyspaces => false,
        }
    }
}

/// Why nothing is answered: the host has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It had before; nothing was changed.
    Before,
    /// It did with the question in hand; what that orders may have been done, or be done yet.
    InHand,
}

/// What is answered.
#[derive(Debug)]
pub enum Reply {
    /// The ring and the groups.
    Ring(Box<Report>),
    /// The keyspaces, as far as this host knows.
    Keyspaces(Arc<Keyspaces>),
    /// How a read was served.
    Explained(Box<Explanation>),
    /// Who holds what.
    Examined(Box<Examination>),
    /// The cluster ends, but for these nodes: they were not reached.
    Closed(Vec<NodeId>),
    /// It was done: the overlay knows, or the faults are in force.
    Done,
    /// It was refused.
    Refused(Refusal),
    /// It names something that does not exist; what, and what there is.
    Unknown(String),
}

/// A question on its way.
pub(super) struct Asked {
    pub question: Question,
    /// When a lane must have answered it at the latest; what the host is configured to take else.
    pub deadline: Option<Instant>,
    pub reply: oneshot::Sender<Reply>,
}

/// The outside's end of the queue.
pub struct Questions {
    sender: Sender<Asked>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The core thread's end of the queue.
pub struct Inbox {
    pub(super) receiver: Receiver<Asked>,
    pub(super) questions: Arc<Questions>,
}

/// Both ends of a queue of questions.
#[must_use]
pub fn questions() -> (Arc<Questions>, Inbox) {
    let (sender, receiver) = channel();
    let questions = Arc::new(Questions { sender, wake: OnceLock::new() });
    (Arc::clone(&questions), Inbox { receiver, questions })
}

impl Questions {
    /// Asks. The caller sees to the time.
    ///
    /// # Errors
    /// The host ends before it answers.
    pub async fn ask(&self, question: Question) -> Result<Reply, Silence> {
        self.ask_by(question, None).await
    }

    /// The same, and a lane that must find the answer has no longer than until this.
    ///
    /// # Errors
    /// See [`Questions::ask`].
    pub async fn ask_by(
        &self,
        question: Question,
        deadline: Option<Instant>,
    ) -> Result<Reply, Silence> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Asked { question, deadline, reply }).map_err(|_| Silence::Before)?;
        // Before there is a waker there is no loop that sleeps.
        if let Some(wake) = self.wake.get() {
            wake();
        }
        answer.await.map_err(|_| Silence::InHand)
    }

    /// Sets what wakes the core thread.
    pub(super) fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // The queue is made for one desk, so nothing else has set it.
        let _ = self.wake.set(Box::new(wake));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_host_that_ends_says_whether_it_had_the_question_in_hand() {
        let mut cx = Context::from_waker(Waker::noop());
        let (questions, inbox) = questions();
        let mut asked =
            pin!(questions.ask(Question::Remove { host: String::from("1"), force: false }));
        assert!(asked.as_mut().poll(&mut cx).is_pending());
        drop(inbox);
        assert!(matches!(asked.poll(&mut cx), Poll::Ready(Err(Silence::InHand))));
        let asked = pin!(questions.ask(Question::Ring));
        assert!(matches!(asked.poll(&mut cx), Poll::Ready(Err(Silence::Before))));
    }
}
