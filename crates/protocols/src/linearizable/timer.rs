//! The engine's timers.

/// What a deadline guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The first alarm of any operation in hand: lost messages, members that do not answer, a
    /// deadline. Stale alarms are skipped.
    Operations,
    /// Transfers make no progress, or may fetch more.
    Transfer,
    /// Operations wait for a view of their token.
    Locate,
    /// A proposal's answers are late.
    Propose,
    /// The groups must be looked after.
    Maintain,
    /// Questions of transfers may be answered.
    Serve,
    /// More of a slot that was given up may be emptied.
    Sweep,
}

const ALL: [Timer; 7] = [
    Timer::Operations,
    Timer::Transfer,
    Timer::Locate,
    Timer::Propose,
    Timer::Maintain,
    Timer::Serve,
    Timer::Sweep,
];

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Option<Timer> {
        ALL.get(code as usize).copied()
    }
}
