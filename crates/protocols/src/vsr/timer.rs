//! Times. A lane has one timer for all its groups, and calls [`super::Replica::tick`] of each.

use quorate_kernel::time::Span;

/// How often a lane calls [`super::Replica::tick`], and so the time between two beats.
pub const TICK: Span = Span::millis(50);
/// For how long a member hears no primary before it doubts that there is one; the next primary
/// first, each other one [`DOUBT_STEP`] after the one before.
pub const DOUBT: Span = Span::millis(200);
/// See [`DOUBT`].
pub const DOUBT_STEP: Span = Span::millis(50);
/// The longest wait for a view to start, after several in a row that did not.
pub const DOUBT_MAX: Span = Span::secs(2);
/// For how long a doubt that another has told of counts.
pub(super) const DOUBT_KEPT: Span = Span::millis(300);
/// For how long a primary hears no majority before it doubts itself.
pub(super) const DEAF: Span = Span::millis(400);
/// How long a question waits for its answer before it is asked again.
pub(super) const ASK_AGAIN: Span = Span::millis(100);
/// For how long the log that follows a copy is kept for whoever makes it and asks for no page.
pub(super) const COPY_KEPT: Span = Span::secs(10);

const _: () = assert!(DOUBT.0 >= 3 * TICK.0, "one lost beat is no reason to doubt");
const _: () = assert!(DOUBT_KEPT.0 > 2 * TICK.0, "doubts are told again before they are old");
