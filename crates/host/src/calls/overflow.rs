//! Room for what clients say so that their sessions go on, where the queue of calls has none.
//!
//! A client that is there is not to lose its session because others ask for much. So where the
//! queue is full, its ping passes, and its word that it goes on with its session: one of each for
//! each session at a time, so that nobody can fill memory with them.

use super::queues::ClientCall;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Operation, Refusal};
use quorate_kernel::tree::{Act, SessionId};
use quorate_kernel::watch::Watch;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// The most of each kind that wait: one of each session that a host can have.
pub(super) const WAITING_MAX: usize = 65_536;

/// Of which session something is, and whether that goes on here.
type Name = (LaneId, SessionId, bool);

/// The outside's end.
pub(super) struct Overflow {
    sender: Sender<ClientCall>,
    /// Pings that wait, and sessions that go on.
    waiting: Mutex<[BTreeSet<Name>; 2]>,
}

/// Both ends.
pub(super) fn overflow() -> (Overflow, Receiver<ClientCall>) {
    let (sender, receiver) = channel();
    (Overflow { sender, waiting: Mutex::default() }, receiver)
}

impl Overflow {
    /// Keeps a call for which the queue has no room, if it is for a session and the only one of its
    /// kind.
    pub fn send(&self, asked: ClientCall) -> Result<(), Refusal> {
        let name = name(&asked).ok_or(Refusal::Overloaded)?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = &mut waiting[usize::from(name.2)];
        if waiting.len() >= WAITING_MAX || !waiting.insert(name) {
            return Err(Refusal::Overloaded);
        }
        self.sender.send(asked).map_err(|_| Refusal::Stopping)
    }

    /// One of them was taken: another of its session may come.
    pub fn on_taken(&self, asked: &ClientCall) {
        if let Some(name) = name(asked) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting[usize::from(name.2)].remove(&name);
        }
    }
}

fn name(asked: &ClientCall) -> Option<Name> {
    match asked {
        ClientCall::Call(called) => match &called.call.operation {
            Operation::Tree(ask) if ask.act == Act::Ping => {
                Some((called.call.keyspace.keyspace().lane, ask.session?, false))
            }
            _ => None,
        },
        ClientCall::Watch(watching) => match &watching.watch {
            Watch::Session(connect) => {
                connect.session.map(|(session, _)| (watching.lane, session, true))
            }
            Watch::Cluster => None,
        },
    }
}
