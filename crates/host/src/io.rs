//! Bytes between sockets and buffers, one read and one vectored write at a time.

use bytes::BytesMut;
use mio::Waker;
use quorate_kernel::rope::Rope;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::Arc;

/// The most pieces one vectored write takes.
const PIECES_MAX: usize = 64;

/// What wakes the loop.
pub(super) fn wake(waker: &Arc<Waker>) -> impl Fn() + Send + Sync + 'static {
    let waker = Arc::clone(waker);
    // A loop that cannot be woken looks by itself soon.
    move || drop(waker.wake())
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The socket may hold more.
    More,
    /// The socket is drained; its end may be left.
    Drained,
    /// The socket had nothing, and no end.
    Empty,
    /// The other side has closed.
    Closed,
}

/// Reads once into the spare room of `buffer`, of which there must be some.
#[allow(unsafe_code)]
pub(super) fn read(from: &impl AsFd, buffer: &mut BytesMut) -> io::Result<Progress> {
    let length = buffer.len();
    let spare = buffer.spare_capacity_mut();
    let room = spare.len();
    assert!(room > 0, "a read needs room");
    let filled = loop {
        match rustix::io::read(from, &mut *spare) {
            Ok((filled, _)) => break filled.len(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Progress::Empty),
            Err(error) => return Err(error.into()),
        }
    };
    if filled == 0 {
        return Ok(Progress::Closed);
    }
    // SAFETY: the call above has initialized the first `filled` bytes of the spare room, which
    // begins right behind the `length` initialized ones and holds at least `filled`.
    unsafe { buffer.set_len(length + filled) };
    Ok(if filled < room { Progress::Drained } else { Progress::More })
}

/// Writes as much of `out` as the socket takes; returns whether everything was taken.
pub(super) fn write(to: &mut impl Write, out: &mut Rope) -> io::Result<bool> {
    while !out.is_empty() {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (piece, chunk) in pieces.iter_mut().zip(out.chunks()) {
            *piece = IoSlice::new(chunk);
            count += 1;
        }
        // One piece is the usual case, and the plain call costs less.
        let result = match &pieces[..count] {
            [one] => to.write(one),
            many => to.write_vectored(many),
        };
        match result {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => out.advance(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
