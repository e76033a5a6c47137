//! Times. A lane has one timer for the block, and calls [`super::Roll::tick`].

use quorate_kernel::time::Span;

/// How often a lane calls [`super::Roll::tick`]; also for how long alerts are gathered before they
/// are sent together (paper: batching, §4.2).
pub const TICK: Span = Span::millis(100);
/// The time between two probes of a subject. One that is not answered before the next has failed.
pub const PROBE: Span = Span::secs(1);
/// How many of the newest probes of a subject count.
pub const WINDOW: u32 = 10;
/// So many failed ones among them are reported: 40 percent (paper §6).
pub const FAILED: u32 = 4;
/// A tick that is late by more than this is of a node that stood still: what it has not heard
/// meanwhile says nothing of others.
pub const STALL: Span = Span::secs(1);
/// How long a subject may have some reports and not enough, before its observers join in.
pub const REINFORCE: Span = Span::secs(5);
/// When alerts are told again, at first; the wait doubles up to [`ALERTS_AGAIN_MAX`].
pub(super) const ALERTS_AGAIN: Span = Span::secs(1);
/// See [`ALERTS_AGAIN`].
pub(super) const ALERTS_AGAIN_MAX: Span = Span::secs(8);
/// For how long a member waits for the fast round, or for another's classic round, before the first
/// in line begins a classic one.
pub const ROUND_WAIT: Span = Span::secs(1);
/// How much later each other one in line does.
pub const ROUND_STEP: Span = Span::millis(200);
/// The last places in line begin together: they wait for no more steps than this.
pub(super) const ROUND_STEPS_MAX: u64 = 50;
/// How long a coordinator waits before it asks those again who have not answered.
pub(super) const ROUND_AGAIN: Span = Span::millis(500);
/// For how long something is undecided before the status says so.
pub const WAITING_SHOWN: Span = Span::secs(3);
/// For how long a member that hears of a later configuration waits for what is on its way.
pub(super) const ASK_AFTER: Span = Span::millis(150);
/// How long a question waits for its answer before it is asked again.
pub(super) const ASK_AGAIN: Span = Span::millis(400);
/// How long a joiner waits for a contact's answer before it turns to the next.
pub(super) const JOIN_ASK: Span = Span::secs(1);
/// How long a joiner waits to be let in before it asks anew for its observers.
pub(super) const JOIN_WAIT: Span = Span::secs(5);
/// When what a joiner, or one that leaves, asks of observers is told again.
pub(super) const ORDER_AGAIN: Span = Span::secs(1);

const _: () = assert!(FAILED * 100 >= WINDOW * 40 && FAILED <= WINDOW && WINDOW <= 16);
const _: () = assert!(STALL.0 >= PROBE.0 && PROBE.0 > 2 * TICK.0);
const _: () =
    assert!(ROUND_AGAIN.0 < ROUND_WAIT.0, "a coordinator asks twice before it is doubted");
const _: () = assert!(JOIN_WAIT.0 > ORDER_AGAIN.0);
