//! What the cluster must know of an engine.

use super::carried::Carried;
use super::run::Run;
use super::table::Stored;
use quorate_kernel::ids::ClusterId;
use quorate_kernel::process::{Inspect, Process};
use quorate_kernel::time::Span;
use quorate_merkle::Merkle;
use quorate_protocols::causal::map::Map;
use quorate_protocols::causal::token::Tokens;
use quorate_protocols::causal::{self, Causal};
use quorate_protocols::dots::context::CausalContext;
use quorate_protocols::dots::dot::Partition;
use std::fmt::Display;

/// An engine that keeps siblings.
pub trait Subject: Process<Message: Clone> + Sized {
    /// The engine of a node before its start.
    fn born(run: &Run, map: &Map) -> Self;

    /// Whether a message replicates a write at once.
    fn is_replication(message: &Self::Message) -> bool;

    /// What a message of anti-entropy carries of objects; none of other messages.
    fn carried(message: &Self::Message) -> Option<Carried>;

    /// How many bytes a node keeps beside objects.
    fn metadata(&self, stored: &Stored) -> u64;

    /// Whether stored objects have their contexts within them.
    const IS_WHOLE: bool;

    /// What of an object's context stands beside the stored object.
    fn beside(&self, _partition: u16, _key: &[u8]) -> Option<&CausalContext> {
        None
    }

    /// Whether nothing is left to be told, as far as the node knows.
    fn is_quiet(&self) -> bool;
}

fn tokens() -> Tokens {
    Tokens::new(b"the simulated cluster's secret", ClusterId(1))
}

/// A number that an engine shows.
pub(super) fn shown<P: Process>(process: &P, name: &str) -> u64 {
    struct Find<'a>(&'a str, u64);
    impl Inspect for Find<'_> {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            if name == self.0 {
                self.1 = value.to_string().parse().expect("it shows numbers");
            }
        }
    }
    let mut find = Find(name, 0);
    process.inspect(&mut find);
    find.1
}

/// What one number of a watermark takes: an actor as it is written, and a counter.
const WATERMARK_BYTES: u64 = 24;

impl Subject for Causal {
    const IS_WHOLE: bool = false;

    fn born(run: &Run, map: &Map) -> Causal {
        Causal::new(causal::Settings {
            sync_interval: Span::micros(run.sync_us),
            strip_interval: Span::micros(run.strip_us),
            replicate_on_write: run.replicates_on_write(),
            limits: causal::Limits { backoff_intervals: 1, ..causal::Limits::default() },
            ..causal::Settings::usual(run.shape(), Some(map.clone()), tokens())
        })
    }

    fn is_replication(message: &Self::Message) -> bool {
        matches!(message, causal::message::Message::Replicate { .. })
    }

    fn carried(message: &Self::Message) -> Option<Carried> {
        match message {
            causal::message::Message::SyncA { .. } => Some(Carried::default()),
            causal::message::Message::SyncB { page, .. } => Some(Carried::of(page)),
            _ => None,
        }
    }

    fn metadata(&self, stored: &Stored) -> u64 {
        stored.beside_objects() + shown(self, "watermark") * WATERMARK_BYTES
    }

    fn beside(&self, partition: u16, key: &[u8]) -> Option<&CausalContext> {
        Causal::beside(self, Partition(partition), key)
    }

    fn is_quiet(&self) -> bool {
        shown(self, "dot_keys") + shown(self, "unstripped") + shown(self, "joining") == 0
    }
}

impl Subject for Merkle {
    const IS_WHOLE: bool = true;

    fn born(run: &Run, map: &Map) -> Merkle {
        Merkle::new(quorate_merkle::Settings {
            sync_interval: Span::micros(run.sync_us),
            replicate_on_write: run.replicates_on_write(),
            width: run.width,
            ..quorate_merkle::Settings::usual(run.shape(), Some(map.clone()), tokens())
        })
    }

    fn is_replication(message: &Self::Message) -> bool {
        matches!(message, quorate_merkle::message::Message::Replicate { .. })
    }

    fn carried(message: &Self::Message) -> Option<Carried> {
        use quorate_merkle::message::Message;
        match message {
            Message::Roots { .. }
            | Message::Buckets { .. }
            | Message::Leaves { .. }
            | Message::Keys { .. } => Some(Carried::default()),
            Message::Repair { page, .. } => Some(Carried::of(page)),
            _ => None,
        }
    }

    fn metadata(&self, _stored: &Stored) -> u64 {
        shown(self, "tree_bytes")
    }

    fn is_quiet(&self) -> bool {
        shown(self, "unequal") + shown(self, "joining") == 0
    }
}
