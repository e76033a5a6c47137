//! The catalog's timers.

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A period has passed: talk to somebody, look after the system group.
    Period,
    /// Nobody has answered the open question in time.
    Retry,
    /// An order must be answered.
    Deadline,
}

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        match self {
            Timer::Period => 0,
            Timer::Retry => 1,
            Timer::Deadline => 2,
        }
    }

    fn from_code(code: u32) -> Option<Timer> {
        [Timer::Period, Timer::Retry, Timer::Deadline].get(code as usize).copied()
    }
}
