//! The engine as a process.
//!
//! All of an operation happens in one turn on the host that is asked: it reads, checks and adds up
//! on cells, and writes only when every item can be done. What one turn writes is one batch on
//! disk, and the other hosts are told in one message, which each of them takes in in one turn.

use crate::tally::{Own, Tally};
use bytes::Bytes;
use quorate_kernel::evaluate::Items;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::plain::PlainData;
use quorate_kernel::process::{self, Process, Recovery, Request};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How often a page is told to somebody.
const TELL: Span = Span::millis(500);
/// A page has about so many bytes.
const PAGE_BYTES: usize = 64 * 1024;

type Context<'a> = process::Context<'a, Counter>;

/// One host's part in a keyspace.
#[derive(Debug, Default)]
pub struct Counter {
    /// The other hosts that are there, as far as is known.
    others: Arc<[NodeId]>,
    /// Where the next page begins.
    next: Bytes,
}

/// The one message: keys with what was added to them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tallies(Vec<(Vec<u8>, Tally)>);

impl PlainData for Tallies {
    fn is_sound(&self) -> bool {
        self.0.iter().all(|(_, tally)| tally.is_sound())
    }
}

fn tally_of(bytes: &[u8]) -> Tally {
    Tally::from_bytes(bytes).expect("this lane wrote it")
}

impl Counter {
    fn tally(key: &Bytes, cx: &Context<'_>) -> Tally {
        cx.table.get(Class::Data, key).map(|bytes| tally_of(&bytes)).unwrap_or_default()
    }
}

impl Process for Counter {
    type Message = Tallies;
    type Timer = ();
    const HEARS: &'static [Topic] = &[Topic::Ring];

    fn start(&mut self, _: Recovery, cx: &mut Context<'_>) {
        cx.fx.arm((), cx.now + TELL);
    }

    fn on_message(&mut self, _: Incarnation, Tallies(told): Tallies, cx: &mut Context<'_>) {
        for (key, theirs) in told {
            let key = Bytes::from(key);
            let mut tally = Counter::tally(&key, cx);
            if !mutant!("counter_deaf") && tally.merge(&theirs) {
                cx.fx.put(key, tally.to_bytes());
            }
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let Some(items) = Items::of(request.operation) else {
            // Doors refuse it: the engine cannot list keys. Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
        };
        let done = items.evaluate(0, |key| Own(cx.me, Counter::tally(key, cx)));
        let keys = done.keys();
        let outcome = match done.told.clone() {
            Ok(told) => items.outcome(told),
            // A check that does not hold shows what its key has.
            Err(refusal) => Outcome::Refused(refusal),
        };
        let mut told = Vec::new();
        if done.told.is_ok() || mutant!("counter_half_done") {
            for (key, Own(_, tally)) in done.written() {
                tally.check();
                cx.fx.put(key.clone(), tally.to_bytes());
                told.push((key.to_vec(), tally));
            }
        }
        if !told.is_empty() {
            cx.fx.send(&self.others, Tallies(told));
        }
        cx.fx.answer_after_keys(ticket, outcome, keys);
    }

    fn on_timer(&mut self, (): (), cx: &mut Context<'_>) {
        cx.fx.arm((), cx.now + TELL);
        let (page, next) = cx.table.page(Class::Data, &self.next, PAGE_BYTES);
        self.next = next.unwrap_or_default();
        let told: Vec<_> = page.iter().map(|(key, it)| (key.to_vec(), tally_of(it))).collect();
        if let Some(other) = cx.rng.pick(&self.others).filter(|_| !told.is_empty()) {
            cx.fx.send(*other, Tallies(told));
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        let News::Ring(ring) = news else { unreachable!("a lane is told what it hears") };
        self.others = ring.others(cx.me.node).collect();
    }
}
