//! The overlay's timers.

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A period of the detector has passed; everything that recurs is counted in such periods.
    Period,
    /// The next round of rumours, while any is hot.
    Rumours,
    /// The ring that was held back may be announced.
    Announce,
    /// A shutdown goes on.
    Shutdown,
    /// The shortest period has passed with which a lane observes peers.
    Observe,
}

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        match self {
            Timer::Period => 0,
            Timer::Rumours => 1,
            Timer::Announce => 2,
            Timer::Shutdown => 3,
            Timer::Observe => 4,
        }
    }

    fn from_code(code: u32) -> Option<Timer> {
        let all = [Timer::Period, Timer::Rumours, Timer::Announce, Timer::Shutdown, Timer::Observe];
        all.get(code as usize).copied()
    }
}
