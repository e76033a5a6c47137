//! What the door counts over all its connections, for its four-letter words.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use quorate_kernel::time::Span;
use quorate_kernel::tree::Zxid;

/// Counts since the start. They are read for people alone: none decides anything.
#[derive(Debug)]
pub(super) struct Counters {
    received: AtomicU64,
    sent: AtomicU64,
    outstanding: AtomicU64,
    newest: AtomicU64,
    answers: AtomicU64,
    latency_ms: AtomicU64,
    latency_ms_min: AtomicU64,
    latency_ms_max: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// How many frames and four-letter words were read.
    pub received: u64,
    /// How many frames were written.
    pub sent: u64,
    /// How many requests are in hand.
    pub outstanding: u64,
    /// The newest change that a client was told of.
    pub newest: u64,
    /// The least, the average and the most time in milliseconds until an answer.
    pub latency_ms: [u64; 3],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            outstanding: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            latency_ms: AtomicU64::new(0),
            latency_ms_min: AtomicU64::new(u64::MAX),
            latency_ms_max: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// A frame or a word was read.
    pub fn on_received(&self) {
        self.received.fetch_add(1, Relaxed);
    }

    /// A frame was written, or waits for earlier ones.
    pub fn on_sent(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    /// A client was told of a change.
    pub fn on_told(&self, zxid: Zxid) {
        self.newest.fetch_max(zxid.0, Relaxed);
    }

    /// A request was asked of the engine.
    pub fn on_asked(&self) {
        self.outstanding.fetch_add(1, Relaxed);
    }

    /// So many requests that were asked are in hand no more.
    pub fn on_ended(&self, count: usize) {
        self.outstanding.fetch_sub(count as u64, Relaxed);
    }

    /// The engine has answered after so long.
    pub fn on_answered(&self, after: Span) {
        let ms = after.as_millis();
        self.answers.fetch_add(1, Relaxed);
        self.latency_ms.fetch_add(ms, Relaxed);
        self.latency_ms_min.fetch_min(ms, Relaxed);
        self.latency_ms_max.fetch_max(ms, Relaxed);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let answers = self.answers.load(Relaxed);
        let average = self.latency_ms.load(Relaxed).checked_div(answers).unwrap_or(0);
        let least = if answers == 0 { 0 } else { self.latency_ms_min.load(Relaxed) };
        Counts {
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
            outstanding: self.outstanding.load(Relaxed),
            newest: self.newest.load(Relaxed),
            latency_ms: [least, average, self.latency_ms_max.load(Relaxed)],
        }
    }
}
