//! How slow a client may be: it sends what it has begun at some pace, and takes what it is told.

use mio::net::TcpStream;
use quorate_kernel::time::{Span, Time};
use rustix::net::sockopt;
use std::time::Duration;

/// How long it may take in any case.
pub(super) const AT_LEAST: Span = Span::secs(30);
/// How many bytes of it a second must come beyond that.
const BYTES_PER_SECOND: usize = 64 * 1024;
/// How long a silent connection is taken to be there before its other end is asked, as in Redis.
const SILENT_FOR: Duration = Duration::from_secs(300);
/// Then it is asked so often,
const PROBES: u32 = 3;
/// with this between two.
const BETWEEN_PROBES: Duration = Duration::from_secs(100);

/// Whether so many bytes, which are under way since then, should be over by now.
pub(super) fn is_late(since: Time, bytes: usize, now: Time) -> bool {
    now > since + AT_LEAST + Span::secs((bytes / BYTES_PER_SECOND) as u64)
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

    #[test]
    fn what_is_long_may_take_longer() {
        let after = |secs| Time(0) + Span::secs(secs);
        assert!(!is_late(Time(0), 10, after(30)));
        assert!(is_late(Time(0), 10, after(31)));
        let long = 16 * 1024 * 1024;
        assert!(!is_late(Time(0), long, after(30 + 256)));
        assert!(is_late(Time(0), long, after(30 + 257)));
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
