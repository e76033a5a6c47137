//! Times. A lane has one timer for all its groups, and hands each of them
//! [`super::Input::Tick`].

use super::execute::act::WallMs;
use super::rules::CLOCK_AHEAD_MAX_MS;
use quorate_kernel::mutant;
use quorate_kernel::time::Span;

/// How long a transaction may lack votes before its coordinator decides that it has failed.
pub const VOTE: Span = Span::secs(2);
/// How long a transaction waits for a key: of one group alone, it has failed then; of several, it
/// is forgotten where it has not voted. Longer than what it waits for may take: it need not fail
/// with it.
pub const WAIT: Span = Span::secs(4);
/// How long a read waits until it can be answered.
pub const READ: Span = WAIT;
/// How long a question to another group waits for its answer before it is asked again; twice as
/// long each time, up to [`INQUIRY_MAX`].
pub const INQUIRY: Span = Span::millis(500);
/// See [`INQUIRY`]. Shorter than [`VOTE`]: when a group that was gone is back, whoever holds locks
/// until it answers asks before those who wait for these have failed.
pub const INQUIRY_MAX: Span = Span::secs(1);

/// How long a bucket that is to be handed over waits for those who hold its keys, while nothing is
/// begun on it. Shorter than [`VOTE`]: who waits for it need not fail.
pub const CLOSED: Span = Span::secs(1);
/// How long it is not tried again then.
pub const REOPENED: Span = Span::secs(3);

const _: () = assert!(CLOSED.0 < VOTE.0, "who waits for a bucket need not fail with it");
const _: () = assert!(INQUIRY.0 * 2 < VOTE.0, "a lost vote is sent again before it is too late");
const _: () = assert!(INQUIRY_MAX.0 < VOTE.0, "who waits for what is asked about does not fail");
const _: () = assert!(WAIT.0.is_multiple_of(1_000_000), "a horizon's lag is in milliseconds");
const _: () = assert!(WAIT.0 >= 2 * VOTE.0, "who waits outlives what it waits for");

/// When something is sent again.
#[derive(Clone, Copy, Debug)]
pub struct Again {
    due: quorate_kernel::time::Time,
    wait: Span,
}

impl Again {
    /// First after one [`INQUIRY`].
    pub fn after(now: quorate_kernel::time::Time) -> Again {
        Again { due: now + INQUIRY, wait: INQUIRY }
    }

    /// Whether it is time; if so, the next wait begins.
    pub fn is_due(&mut self, now: quorate_kernel::time::Time) -> bool {
        if now < self.due {
            return false;
        }
        let longest = if mutant!("txn_asks_too_late") { Span::secs(8) } else { INQUIRY_MAX };
        self.wait = Span((self.wait.0 * 2).min(longest.0));
        self.due = now + self.wait;
        true
    }
}

/// The clock of a primary whose wall clock says this, and whose clock was `seen` before: when it
/// was looked at last, or, of a primary that begins, the last one in the log.
///
/// It does not run backwards when hosts differ a little, or a clock is set right: so what is due at
/// one primary is due at the next. It goes back where the one before was ahead by more than hosts
/// differ. That one was wrong: it is believed for a minute, in which the clock stands, and keys
/// that live shorter go early. Then the right one has caught up, and the last clock in the log is
/// right: so that one counts, and not the highest, which would be believed again by whoever leads
/// later, until time has come there.
///
/// No promise hangs on which way it goes. Whatever anybody is shown of an expiry was logged as a
/// removal, so what was seen to be gone stays gone; a removal that is in the log is done or not by
/// the clock in its own entry, at all replicas alike; and a transaction is evaluated once, and what
/// is logged is what came of it. What may come back is a key that was due by the wrong clock alone,
/// and that nobody was told is gone: it lives as long as its writer has said.
///
/// While a wrong one leads, what it removes early is removed: nothing but another clock tells it
/// from one that is right after a group was idle for long.
pub fn clock(seen: WallMs, wall: WallMs) -> WallMs {
    let wall = if mutant!("txn_expires_early") { wall + 3000 } else { wall };
    let believed = wall.saturating_add(CLOCK_AHEAD_MAX_MS);
    wall.max(if mutant!("txn_clock_stays_ahead") { seen } else { seen.min(believed) })
}
