//! What other threads of this process ask for: the doors that are not on the core thread.
//!
//! Operations and watches reach the core thread ([`super::callers`]) through one bounded queue
//! without a lock, and what operators ask ([`crate::operators::answers`]) through another: it is
//! taken also while operations wait. When a queue is full, the next one is refused at once as
//! overload, unless a session rests on it ([`super::overflow`]).

use super::overflow::{Overflow, overflow};
use crate::keyspaces::Served;
use crate::operators::requests::{OperatorCall, OperatorReply, OperatorRequest, Silence};
use quorate_kernel::ids::{Incarnation, LaneId};
use quorate_kernel::limits::WATCH_QUEUE_MAX;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::watch::{Event, Watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The most calls in a queue.
pub(super) const QUEUED_MAX: usize = 1024;

/// An operation that another thread asks for.
#[derive(Debug)]
pub struct Call {
    /// The keyspace, one of [`Calls::keyspaces`].
    pub keyspace: Arc<Served>,
    /// What is asked.
    pub operation: Operation,
    /// When it must have been answered.
    pub deadline: Instant,
    /// What is known of a write beside what it writes.
    pub named: Option<Named>,
}

/// A write that is recognized when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// 16 bytes that no other request has.
    pub id: [u8; 16],
    /// A hash of what is asked.
    pub digest: u64,
    /// Whom it was first sent to and how long ago, if this is not the first time.
    pub repeat: Option<(Incarnation, Duration)>,
}

/// What a caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The operation has ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// Whether an earlier request of this name had it done.
        is_repeated: bool,
    },
    /// Another request had its id. Nothing was done.
    Reused,
    /// It was sent before, to another host or start. Nothing was done now.
    Elsewhere,
    /// It was sent before, so long ago that it may have been done and forgotten. Nothing was done
    /// now.
    Forgotten,
}

/// What has happened, as whoever watches is told; an error is the end of it.
pub type Happened = Result<Vec<Event>, Refusal>;

/// A watch on its way.
pub(crate) struct Watching {
    pub lane: LaneId,
    pub watch: Watch,
    pub to: mpsc::Sender<Happened>,
}

/// What other threads ask for.
#[allow(clippy::large_enum_variant, reason = "calls are many, and watches few")]
pub(crate) enum ClientCall {
    Call(Called),
    Watch(Watching),
}

/// A call on its way.
pub(crate) struct Called {
    pub call: Call,
    /// When it was made.
    pub at: Instant,
    pub reply: oneshot::Sender<CallEnd>,
}

/// The outside's end of the queues.
pub struct Calls {
    sender: SyncSender<ClientCall>,
    overflow: Overflow,
    operators: SyncSender<OperatorCall>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    is_woken: AtomicBool,
    keyspaces: Mutex<Option<Arc<[Arc<Served>]>>>,
}

/// The core thread's end of the queues.
pub struct CallsInbox {
    /// Calls, and those for which there was no room among them.
    pub(crate) clients: (Receiver<ClientCall>, Receiver<ClientCall>),
    pub(crate) operators: Receiver<OperatorCall>,
    pub(crate) calls: Arc<Calls>,
}

/// Both ends of the queues of calls.
#[must_use]
pub fn calls() -> (Arc<Calls>, CallsInbox) {
    let (sender, receiver) = sync_channel(QUEUED_MAX);
    let (overflow, overflown) = overflow();
    let (to_operators, operators) = sync_channel(QUEUED_MAX);
    let calls = Arc::new(Calls {
        sender,
        overflow,
        operators: to_operators,
        wake: OnceLock::new(),
        is_woken: AtomicBool::new(false),
        keyspaces: Mutex::new(None),
    });
    let clients = (receiver, overflown);
    (Arc::clone(&calls), CallsInbox { clients, operators, calls })
}

impl Calls {
    /// Has an operation done. Whoever stops waiting does not undo it.
    pub async fn call(&self, call: Call) -> CallEnd {
        let (reply, told) = oneshot::channel();
        let refused =
            |refusal| CallEnd::Ended { outcome: Outcome::Refused(refusal), is_repeated: false };
        let may_change = call.operation.is_write();
        if let Err(refusal) =
            self.send(ClientCall::Call(Called { call, at: Instant::now(), reply }))
        {
            return refused(refusal);
        }
        // The host ended with the operation in hand.
        let lost = if may_change { Refusal::OutcomeUnknown } else { Refusal::Stopping };
        told.await.unwrap_or_else(|_| refused(lost))
    }

    /// Follows what a lane of this node tells. Whoever drops the receiver ends it. If what comes is
    /// not taken, the watch ends with [`Refusal::TooSlow`]; it holds a bounded number of answers.
    ///
    /// # Errors
    /// It cannot be begun.
    pub fn watch(&self, lane: LaneId, watch: Watch) -> Result<mpsc::Receiver<Happened>, Refusal> {
        let (to, happened) = mpsc::channel(WATCH_QUEUE_MAX);
        self.send(ClientCall::Watch(Watching { lane, watch, to }))?;
        Ok(happened)
    }

    /// Asks what an operator asks; the caller sees to the time.
    ///
    /// # Errors
    /// The host ends before it answers.
    pub async fn ask(&self, request: OperatorRequest) -> Result<OperatorReply, Silence> {
        self.ask_by(request, None).await
    }

    /// The same, and a lane that must find the answer has no longer than until this.
    ///
    /// # Errors
    /// See [`Calls::ask`].
    pub async fn ask_by(
        &self,
        request: OperatorRequest,
        deadline: Option<Instant>,
    ) -> Result<OperatorReply, Silence> {
        let (reply, told) = oneshot::channel();
        match self.operators.try_send(OperatorCall { request, deadline, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Ok(OperatorReply::Refused(Refusal::Overloaded)),
            Err(TrySendError::Disconnected(_)) => return Err(Silence::Before),
        }
        // Before there is a waker there is no loop that sleeps.
        if let Some(wake) = self.wake.get() {
            wake();
        }
        told.await.map_err(|_| Silence::InHand)
    }

    /// The keyspaces that are served now, in the order of their lanes; none while it is not known
    /// which there are.
    #[must_use]
    pub fn keyspaces(&self) -> Option<Arc<[Arc<Served>]>> {
        self.keyspaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keyspaces came or went.
    pub(crate) fn set_keyspaces(&self, keyspaces: Arc<[Arc<Served>]>) {
        *self.keyspaces.lock().unwrap_or_else(PoisonError::into_inner) = Some(keyspaces);
    }

    /// Sets what wakes the core thread.
    pub(crate) fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // The queue is made for one host, so nothing else has set it.
        let _ = self.wake.set(Box::new(wake));
    }

    /// The core thread looks: whoever comes from here on wakes it again.
    pub(super) fn on_look(&self) {
        self.is_woken.store(false, Ordering::Release);
    }

    /// Queues a call, if there is room, and somebody to take it.
    pub(crate) fn send(&self, asked: ClientCall) -> Result<(), Refusal> {
        match self.sender.try_send(asked) {
            Ok(()) => {}
            Err(TrySendError::Full(asked)) => self.overflow.send(asked)?,
            Err(TrySendError::Disconnected(_)) => return Err(Refusal::Stopping),
        }
        self.wake();
        Ok(())
    }

    /// A call for which there was no room in the queue was taken.
    pub(super) fn on_overflow_taken(&self, asked: &ClientCall) {
        self.overflow.on_taken(asked);
    }

    /// Wakes the core thread unless it has been woken and not looked yet.
    fn wake(&self) {
        if !self.is_woken.swap(true, Ordering::AcqRel)
            && let Some(wake) = self.wake.get()
        {
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_host_that_ends_says_whether_it_had_the_request_in_hand() {
        let mut cx = Context::from_waker(Waker::noop());
        let (calls, inbox) = calls();
        let mut asked =
            pin!(calls.ask(OperatorRequest::Remove { host: String::from("1"), force: false }));
        assert!(asked.as_mut().poll(&mut cx).is_pending());
        drop(inbox);
        assert!(matches!(asked.poll(&mut cx), Poll::Ready(Err(Silence::InHand))));
        let asked = pin!(calls.ask(OperatorRequest::Ring));
        assert!(matches!(asked.poll(&mut cx), Poll::Ready(Err(Silence::Before))));
    }
}
