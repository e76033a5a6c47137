//! Wakes the event loop at a point in time more exactly than a poll's whole milliseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use quorate_kernel::time::Span;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A timer that makes a registered token readable.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// A timer that is not set, reported under this token.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Alarm { timer })
    }

    /// Sets the timer. It need not be read when it fires: setting it again takes the event back.
    pub fn set(&self, delay: Span) -> io::Result<()> {
        // A zero would switch the timer off.
        let nanos = delay.0.max(1);
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: (nanos / NANOS_PER_SECOND) as i64,
            tv_nsec: (nanos % NANOS_PER_SECOND) as i64,
        };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        Ok(())
    }
}
