//! What the engine inside asks for, asked for once more by the wrapper: with the same release, so
//! that what is held back is held back for the same reason.

use super::engine::Quorums;
use super::message::Sent;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients, Release};
use quorate_protocols::linearizable::message::Message;
use quorate_protocols::linearizable::timer::Timer;

/// Sends a message.
pub(super) fn send(to: Recipients, sent: Sent, release: Release, fx: &mut Effects<Quorums>) {
    match release {
        Release::Lane => fx.send(to, sent),
        Release::Key(key) => fx.send_after_key(to, sent, key),
        Release::Keys(_) => unreachable!("no message of this engine shows several keys"),
        Release::State => fx.send_after_state(to, sent),
        // The engine inside says why.
        Release::Early => fx.send_early(to, sent),
    }
}

/// Asks for anything else.
pub(super) fn pass_on(effect: Effect<Message, Timer>, fx: &mut Effects<Quorums>) {
    match effect {
        Effect::Write { class, key, value } => fx.write(class, key, value),
        Effect::Send { .. } => unreachable!("messages are sent by `send`"),
        Effect::Answer { ticket, outcome, release } => match release {
            Release::Lane => fx.answer(ticket, outcome),
            Release::Key(key) => fx.answer_after_key(ticket, outcome, key),
            Release::Keys(keys) => fx.answer_after_keys(ticket, outcome, keys),
            Release::State => unreachable!("no answer waits for state alone"),
            // The engine inside says why.
            Release::Early => fx.answer_early(ticket, outcome),
        },
        Effect::Arm { timer, at } => fx.arm(timer, at),
        Effect::Disarm { timer } => fx.disarm(timer),
        Effect::Announce(Note::Load(load)) => fx.announce_load(load),
        Effect::Announce(Note::Observe(wish)) => fx.observe(wish.peers, wish.every),
        Effect::Announce(Note::Refused(what)) => fx.refuse(what),
        Effect::Announce(other) => unreachable!("{other:?} is of other lanes"),
    }
}
