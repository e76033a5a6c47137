//! The engine's timers.

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The next round (δ): balls, neighbours, and all that waits.
    Round,
}

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        0
    }

    fn from_code(code: u32) -> Option<Timer> {
        (code == 0).then_some(Timer::Round)
    }
}
