//! The engine as a process.

use crate::tally::Tally;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::{self, Process, Recovery, Request};
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use std::sync::Arc;

/// How often a page is told to somebody.
const TELL: Span = Span::millis(500);
/// A page has about so many bytes.
const PAGE_BYTES: usize = 64 * 1024;
/// What a put takes.
pub const EXPECTED: &str = "numbers to add: whole, and 2^64 - 1 in all from one start of a host";

/// What this lane does with its messages, timers and effects.
pub type Context<'a> = process::Context<'a, Counter>;

/// One host's part in a keyspace.
#[derive(Debug, Default)]
pub struct Counter {
    /// The other hosts that are there, as far as is known.
    pub others: Vec<NodeId>,
    /// Where the next page begins.
    next: Bytes,
}

/// Keys with what was added to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tallies(pub Vec<(Vec<u8>, Tally)>);

/// The one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tell;

impl process::Timer for Tell {
    fn code(self) -> u32 {
        0
    }

    fn from_code(code: u32) -> Option<Tell> {
        (code == 0).then_some(Tell)
    }
}

impl Wire for Tallies {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.tail(0, &bytes_of(&self.0));
    }

    fn decode(input: &Decoder) -> Result<Tallies, WireError> {
        let wrong = WireError::Malformed { what: "tallies" };
        let told: Vec<(Vec<u8>, Tally)> =
            postcard::from_bytes(&input.tail(0)).map_err(|_| wrong.clone())?;
        let is_sound = told.iter().all(|(_, tally)| tally.is_sound());
        if is_sound { Ok(Tallies(told)) } else { Err(wrong) }
    }
}

pub fn bytes_of(value: &impl serde::Serialize) -> Bytes {
    postcard::to_allocvec(value).expect("plain data always serializes").into()
}

fn tally_of(bytes: &[u8]) -> Tally {
    postcard::from_bytes(bytes).expect("this lane wrote it")
}

/// What a get shows of a tally.
pub fn shown(tally: &Tally) -> Option<Bytes> {
    Some(tally.sum()).filter(|sum| *sum > 0).map(|sum| Bytes::from(sum.to_string()))
}

/// The number that a put adds.
pub fn number_of(value: &[u8]) -> Result<u64, Refusal> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or(Refusal::Value { expected: EXPECTED })
}

impl Counter {
    pub fn tally(key: &Bytes, cx: &Context<'_>) -> Tally {
        cx.table.get(Class::Data, key).map(|bytes| tally_of(&bytes)).unwrap_or_default()
    }

    /// Stores a tally, tells the others of it, and answers, each when it is durable.
    fn change(
        &self,
        ticket: Ticket,
        key: Bytes,
        tally: Tally,
        outcome: Outcome,
        cx: &mut Context<'_>,
    ) {
        tally.check();
        cx.fx.put(key.clone(), bytes_of(&tally));
        let others: Arc<[NodeId]> = self.others.clone().into();
        cx.fx.send_after_key(&others, Tallies(vec![(key.to_vec(), tally)]), key.clone());
        cx.fx.answer_after_key(ticket, outcome, key);
    }

    fn put(&self, ticket: Ticket, key: Bytes, value: &Bytes, cx: &mut Context<'_>) {
        let mut tally = Counter::tally(&key, cx);
        match number_of(value).and_then(|number| tally.add(cx.me, number)) {
            Ok(()) => self.change(ticket, key, tally, Outcome::written(), cx),
            // Nothing was done.
            Err(refusal) => cx.fx.answer_early(ticket, Outcome::Refused(refusal)),
        }
    }
}

impl Process for Counter {
    type Message = Tallies;
    type Timer = Tell;
    const HEARS: &'static [Topic] = &[Topic::Ring];

    fn start(&mut self, _: Recovery, cx: &mut Context<'_>) {
        cx.fx.arm(Tell, cx.now + TELL);
    }

    fn on_message(&mut self, _: Incarnation, Tallies(told): Tallies, cx: &mut Context<'_>) {
        for (key, theirs) in told {
            let key = Bytes::from(key);
            let mut tally = Counter::tally(&key, cx);
            if !mutant!("counter_deaf") && tally.merge(&theirs) {
                cx.fx.put(key, bytes_of(&tally));
            }
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        match request.operation {
            Operation::Get { key, .. } => {
                let value = shown(&Counter::tally(&key, cx));
                // It shows what is durable here.
                cx.fx.answer_after_key(ticket, Outcome::value(value), key);
            }
            Operation::Put { key, value, .. } => self.put(ticket, key, &value, cx),
            Operation::Delete { key, .. } => {
                let mut tally = Counter::tally(&key, cx);
                let existed = tally.sum() > 0;
                tally.delete();
                self.change(ticket, key, tally, Outcome::deleted(existed), cx);
            }
            Operation::Transact { items, .. } => self.transact(ticket, items, cx),
            // Doors refuse it: the engine cannot list keys.
            Operation::Scan { .. } => {
                cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
            }
        }
    }

    fn on_timer(&mut self, _: Tell, cx: &mut Context<'_>) {
        cx.fx.arm(Tell, cx.now + TELL);
        let (mut page, mut bytes, mut next) = (Vec::new(), 0, None);
        cx.table.scan(Class::Data, &self.next, &mut |key, value| {
            if bytes >= PAGE_BYTES {
                next = Some(Bytes::copy_from_slice(key));
                return false;
            }
            bytes += key.len() + value.len();
            page.push((key.to_vec(), tally_of(value)));
            true
        });
        self.next = next.unwrap_or_default();
        if !page.is_empty() && !self.others.is_empty() {
            let other = self.others[cx.rng.below(self.others.len() as u64) as usize];
            cx.fx.send(other, Tallies(page));
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        let News::Ring(ring) = news else { unreachable!("a lane is told what it hears") };
        let is_there = |host: &&quorate_kernel::ring::RingHost| host.standing != Standing::Left;
        let nodes = ring.hosts().iter().filter(is_there).map(|host| host.who.node);
        self.others = nodes.filter(|node| *node != cx.me.node).collect();
    }
}
