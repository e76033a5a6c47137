//! Frames that were dropped.

use alloc::string::String;

/// Frames dropped, by reason. Expected faults: counters, not log lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The bytes were no frame or no message.
    pub malformed: u64,
    /// The frame was from an earlier start of its source, or for another start of this node.
    pub stale: u64,
    /// The frame was for a lane that this node does not have.
    pub homeless: u64,
    /// The message said what no correct peer says.
    pub refused: u64,
    /// What the last of those said.
    pub why: Option<&'static str>,
    /// The message of a lane here was too long to be sent.
    pub unsent: u64,
    /// The name and the length of the last of those.
    pub unsent_last: Option<String>,
}

impl Dropped {
    /// Counts a message that said what no correct peer says.
    pub(crate) fn refuse(&mut self, what: &'static str) {
        self.refused += 1;
        self.why = Some(what);
    }

    /// Counts a message that was too long to be sent: its name and its length.
    pub(crate) fn leave_unsent(&mut self, what: String) {
        self.unsent += 1;
        self.unsent_last = Some(what);
    }
}
