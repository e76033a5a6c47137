//! The engine's two timers.

/// What a deadline guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The first alarm of any operation in hand: lost messages, members that do not answer, a
    /// deadline. Stale alarms are skipped.
    Operations,
    /// A refill makes no progress: its questions or their answers were lost.
    Refill,
}

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        match self {
            Timer::Operations => 0,
            Timer::Refill => 1,
        }
    }

    fn from_code(code: u32) -> Option<Timer> {
        [Timer::Operations, Timer::Refill].get(code as usize).copied()
    }
}
