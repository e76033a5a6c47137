//! What the node refused of its peers, or could not send, for the metrics and the log.

use crate::metrics::{RejectReason, Shared};
use quorate_node::dropped::Dropped;
use std::time::{Duration, Instant};

/// How often it is logged at most: a peer that sends nonsense may send much of it.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// What was told already.
#[derive(Default)]
pub(crate) struct Refused {
    told: u64,
    /// Of messages that were too long to be sent.
    told_unsent: u64,
    logged: Option<Instant>,
}

impl Refused {
    /// Tells what was refused since. Frames of earlier starts, and for lanes that are not open
    /// here, are none of these: they are expected.
    pub fn tell(&mut self, dropped: Dropped, shared: &Shared) {
        let unsent = dropped.unsent - std::mem::replace(&mut self.told_unsent, dropped.unsent);
        if unsent > 0 {
            let message = dropped.unsent_last.unwrap_or_default();
            tracing::error!(event = "message_not_sent", count = unsent, message);
            shared.reject_many(RejectReason::Unsent, unsent);
        }
        let all = dropped.malformed + dropped.refused;
        let fresh = all - std::mem::replace(&mut self.told, all);
        if fresh == 0 {
            return;
        }
        shared.reject_many(RejectReason::Frame, fresh);
        if self.logged.is_none_or(|at| at.elapsed() >= LOGGED_EVERY) {
            self.logged = Some(Instant::now());
            let why = dropped.why.unwrap_or("the bytes are no message");
            tracing::warn!(event = "frames_refused", count = fresh, why);
        }
    }
}
