//! How slow a client may be: it sends what it has begun at some pace, and takes what it is told.

use mio::net::TcpStream;
use quorate_kernel::time::{Span, Time};
use rustix::net::sockopt;
use std::time::Duration;

/// How long it may take in any case.
pub(super) const AT_LEAST: Span = Span::secs(30);
/// How many bytes of it a second must come beyond that.
const BYTES_PER_SECOND: u64 = 64 * 1024;
/// How long a silent connection is taken to be there before its other end is asked, as in Redis.
const SILENT_FOR: Duration = Duration::from_secs(300);
/// Then it is asked so often,
const PROBES: u32 = 3;
/// with this between two.
const BETWEEN_PROBES: Duration = Duration::from_secs(100);

/// Since when what a client sends, and what it is told, is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    begun_at: Time,
    /// Since when something waits that was not read.
    waits_since: Option<Time>,
    even_at: Time,
}

impl Pace {
    /// Of a client that has just come.
    pub fn new(now: Time) -> Pace {
        Pace { begun_at: now, waits_since: Some(now), even_at: now }
    }

    /// It has sent something.
    pub fn on_sent(&mut self, now: Time) {
        self.waits_since.get_or_insert(now);
    }

    /// That is read, the beginning of a request or more of one. While nobody read, it could send
    /// no more: that is not its delay.
    pub fn on_read(&mut self, is_beginning: bool, now: Time) {
        let waited = self.waits_since.take().map_or(Span(0), |since| now - since);
        self.begun_at = if is_beginning { now } else { now.min(self.begun_at + waited) };
    }

    /// What is left of it begins another request.
    pub fn on_begun(&mut self, now: Time) {
        self.begun_at = now;
    }

    /// It is told something, and had taken all before.
    pub fn on_told(&mut self, now: Time) {
        self.even_at = now;
    }

    /// It has taken so many bytes of what it was told, and so many are left.
    pub fn on_taken(&mut self, bytes: usize, left: usize, now: Time) {
        self.even_at = if left == 0 { now } else { now.min(self.even_at + time_of(bytes)) };
    }

    /// Whether a request of so many bytes should have come by now.
    pub fn sends_late(&self, bytes: usize, now: Time) -> bool {
        now > self.begun_at + AT_LEAST + time_of(bytes)
    }

    /// Whether so many bytes that it is told should have been taken by now.
    pub fn takes_late(&self, bytes: usize, now: Time) -> bool {
        now > self.even_at + AT_LEAST + time_of(bytes)
    }
}

/// How long so many bytes may take.
fn time_of(bytes: usize) -> Span {
    Span((bytes as u64).saturating_mul(1_000_000_000) / BYTES_PER_SECOND)
}

/// Has the system find out when the other end of a connection is gone without a word, as it is
/// behind a gateway that was restarted: it would keep its place for ever.
pub(super) fn watch_silence(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENT_FOR)?;
    sockopt::set_tcp_keepintvl(stream, BETWEEN_PROBES)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 16 * 1024 * 1024;

    fn after(secs: u64) -> Time {
        Time(0) + Span::secs(secs)
    }

    #[test]
    fn what_is_long_may_take_longer() {
        let mut pace = Pace::new(Time(0));
        pace.on_read(true, Time(0));
        assert!(!pace.sends_late(10, after(30)) && pace.sends_late(10, after(31)));
        assert!(!pace.sends_late(LONG, after(30 + 256)) && pace.sends_late(LONG, after(30 + 257)));
        pace.on_begun(after(20));
        assert!(!pace.sends_late(10, after(50)) && pace.sends_late(10, after(51)));
        pace.on_told(after(600));
        assert!(!pace.takes_late(LONG, after(600 + 286)), "it had nothing to take before");
        assert!(pace.takes_late(LONG, after(600 + 287)));
    }

    #[test]
    fn what_was_not_read_is_not_its_delay() {
        let mut pace = Pace::new(Time(0));
        pace.on_read(true, Time(0));
        pace.on_sent(after(1));
        pace.on_sent(after(50));
        pace.on_read(false, after(61));
        assert!(!pace.sends_late(10, after(90)) && pace.sends_late(10, after(91)));
        pace.on_read(false, after(95));
        assert!(pace.sends_late(10, after(95)), "little bytes now and then do not help");
    }

    #[test]
    fn who_takes_at_a_pace_is_not_late_though_more_always_waits() {
        let [mut fast, mut slow] = [Pace::new(Time(0)); 2];
        for second in 1..=200 {
            fast.on_taken(256 * 1024, 1 << 20, after(second));
            slow.on_taken(1024, 1 << 20, after(second));
        }
        assert!(!fast.takes_late(1 << 20, after(200)));
        assert!(slow.takes_late(1 << 20, after(200)));
        slow.on_taken(1 << 20, 0, after(201));
        assert!(!slow.takes_late(10, after(202)));
    }

    #[test]
    fn a_silent_end_is_asked_after() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let stream = TcpStream::connect(address).expect("a connection");
        watch_silence(&stream).expect("the system can");
        assert!(sockopt::socket_keepalive(&stream).expect("it is told"));
        assert_eq!(sockopt::tcp_keepidle(&stream).expect("it is told"), SILENT_FOR);
    }
}
