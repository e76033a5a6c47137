//! The engine's timers.

/// What a deadline guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The first alarm of any operation in hand: lost messages, a deadline.
    Operations,
    /// It is time for the next exchanges of anti-entropy.
    Sync,
    /// It is time to strip contexts and to drop what everybody has seen.
    Strip,
    /// It is time for the next pages of a pass of stripping.
    StripMore,
    /// More of what was given up may be deleted.
    Sweep,
}

const ALL: [Timer; 5] =
    [Timer::Operations, Timer::Sync, Timer::Strip, Timer::StripMore, Timer::Sweep];

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Option<Timer> {
        ALL.get(code as usize).copied()
    }
}
