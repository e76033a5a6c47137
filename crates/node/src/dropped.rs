//! Frames that were dropped.

/// Frames dropped, by reason. Expected faults: counters, not log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}
