//! The timers of a lane.

use quorate_kernel::process;

/// One of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The group, and what clients wait for, every 50 ms ([`crate::vsr::TICK`]).
    Tick,
    /// What a turn has left for the next.
    Again,
}

impl process::Timer for Timer {
    fn code(self) -> u32 {
        match self {
            Timer::Tick => 0,
            Timer::Again => 1,
        }
    }

    fn from_code(code: u32) -> Option<Timer> {
        match code {
            0 => Some(Timer::Tick),
            1 => Some(Timer::Again),
            _ => None,
        }
    }
}
