//! The engine's timers.

/// What a deadline guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The first alarm of any operation in hand: lost messages, members that do not answer, a
    /// deadline. Stale alarms are skipped.
    Operations,
    /// Transfers make no progress, or may fetch more.
    Transfer,
    /// Operations wait for a view of their position.
    Locate,
    /// A proposal's answers are late.
    Propose,
    /// The groups must be looked after.
    Tend,
}

const ALL: [Timer; 5] =
    [Timer::Operations, Timer::Transfer, Timer::Locate, Timer::Propose, Timer::Tend];

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Option<Timer> {
        ALL.get(code as usize).copied()
    }
}
