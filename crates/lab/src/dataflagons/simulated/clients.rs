//! Who asks what, and what came of it.

use super::cluster::Cluster;
use super::nodes::Plan;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Operation, Outcome, Which};
use quorate_kernel::process::{Process, Request as Asked};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::Replaces;
use quorate_protocols::epidemic::Level;
use quorate_protocols::epidemic::replica::version::Version;
use quorate_protocols::epidemic::token::Tokens;
use quorate_protocols::epto::EventKey;

/// For how many rounds a client waits.
const PATIENCE_ROUNDS: u64 = 150;

/// What a client asked. Its place in the history is its ticket, and the value that it writes.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which key.
    pub key: u32,
    /// Whether it writes it.
    pub is_put: bool,
    /// When.
    pub at: Time,
    /// What came of it, if anything has.
    pub answer: Option<Conclusion>,
}

/// How a request ended for its client: with an answer, a refusal, or its patience.
#[derive(Clone, Debug)]
pub struct Conclusion {
    /// When.
    pub at: Time,
    /// Whether it was done, and not refused.
    pub is_done: bool,
    /// The event of the order that it is told of.
    pub event: Option<EventKey>,
    /// Which request wrote what was read.
    pub value: Option<u64>,
}

impl Request {
    /// The bytes of the key.
    #[must_use]
    pub fn key(&self) -> Bytes {
        Bytes::from(format!("key-{}", self.key))
    }

    /// How long it took, if it was done.
    #[must_use]
    pub fn latency(&self) -> Option<Span> {
        self.answer.as_ref().filter(|answer| answer.is_done).map(|answer| answer.at - self.at)
    }
}

/// A value that tells which request wrote it.
pub(super) fn value(ticket: u64, bytes: usize) -> Bytes {
    let mut value = BytesMut::with_capacity(bytes.max(8));
    value.put_u64(ticket);
    value.resize(bytes.max(8), 0);
    value.freeze()
}

pub(super) fn writer(value: &Bytes) -> Option<u64> {
    value.first_chunk().map(|first| u64::from_be_bytes(*first))
}

impl Cluster {
    /// A client asks the next thing of a random node that is ready.
    pub(super) fn ask(&mut self, client: usize) {
        if !self.is_loaded {
            return;
        }
        let Some(node) = self.ready_node() else {
            let again = self.light.now() + self.shape.round;
            return self.light.plan(again, Plan::Ask { client });
        };
        let key = self.rng.below(u64::from(self.shape.keys)) as u32;
        let is_put = self.rng.below(100) >= u64::from(self.shape.gets_percent);
        self.ask_of(node, (key, is_put), Some(client), None);
    }

    /// Asks a node. Versions are those of requests, unless another one is chosen.
    pub(super) fn ask_of(
        &mut self,
        node: usize,
        what: (u32, bool),
        client: Option<usize>,
        version: Option<u64>,
    ) {
        let ((key, is_put), at) = (what, self.light.now());
        let ticket = self.history.len() as u64;
        let request = Request { key, is_put, at, answer: None };
        let deadline = at + Span(self.shape.round.0 * PATIENCE_ROUNDS);
        let operation = self.operation(&request, ticket, version.unwrap_or(ticket));
        self.history.push(request);
        self.clients.push(client);
        // Whoever was asked may be gone by then.
        let late = deadline + Span(self.shape.round.0 * 2);
        self.light.plan(late, Plan::GiveUp { ticket });
        self.light.step(node, |process, cx| {
            process.on_request(Ticket(ticket), Asked { operation, deadline }, cx);
        });
        self.hear();
    }

    /// Writes a key under a version, at a random node that is ready; where writes are ordered the
    /// version is chosen by the order. Returns what names the value.
    pub fn put_as(&mut self, key: u32, version: u64) -> Option<u64> {
        let node = self.ready_node()?;
        self.ask_of(node, (key, true), None, Some(version));
        Some(self.history.len() as u64 - 1)
    }

    fn operation(&self, request: &Request, ticket: u64, version: u64) -> Operation {
        let key = request.key();
        let is_versioned = self.shape.level == Level::None;
        if !request.is_put {
            return Operation::Get { key, which: Which::One, replies: None };
        }
        let replaces = if is_versioned { Replaces::Version(version) } else { Replaces::Whatever };
        let value = value(ticket, self.shape.value_bytes);
        Operation::Put { key, value, replaces, name: None }
    }

    /// What a client was told; it goes on at once.
    pub(super) fn answered(&mut self, ticket: u64, at: Time, outcome: &Outcome) {
        let event = |context: &Bytes| {
            let receipt = Receipt::of_context(context)?;
            let tokens = Tokens::with_key([0; 32]);
            match tokens.open(super::cluster::LANE, &receipt.token).ok()? {
                Version::Ordered(event) => Some(event),
                Version::Explicit(_) => None,
            }
        };
        let answer = match outcome {
            Outcome::Values { values, context } => {
                let value = values.iter().next().and_then(writer);
                Conclusion { at, is_done: true, event: event(context), value }
            }
            Outcome::Written { context } => {
                Conclusion { at, is_done: true, event: event(context), value: None }
            }
            _ => Conclusion { at, is_done: false, event: None, value: None },
        };
        self.conclude(ticket, answer);
    }

    /// A client has waited for long enough.
    pub(super) fn give_up(&mut self, ticket: u64) {
        let at = self.light.now();
        self.conclude(ticket, Conclusion { at, is_done: false, event: None, value: None });
    }

    fn conclude(&mut self, ticket: u64, answer: Conclusion) {
        let place = ticket as usize;
        let request = &mut self.history[place];
        if request.answer.is_some() {
            return;
        }
        let at = answer.at;
        request.answer = Some(answer);
        if let Some(client) = self.clients[place] {
            self.light.plan(at, Plan::Ask { client });
        }
    }
}
