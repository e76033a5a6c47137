//! What is sent of a stream.

use super::{ASK_BYTES_MAX, ASK_MAX, ASKED, Stream, TOUCH};
use crate::coordination::message::{GatewayAsks, OpenQuestion};
use crate::coordination::tree::Command;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// How many bytes of answers come before the primary hears that they are here.
const UNSAID_MAX: usize = 1024 * 1024;
/// The most touches whose times are known while nothing is confirmed.
const TOUCHES_MAX: usize = 64;

impl<O> Stream<O> {
    /// What is sent now to whoever leads; nothing if there is nothing new and it was told just now
    /// that the gateway is there.
    pub fn asks(
        &mut self,
        primary: NodeId,
        seen: u64,
        follows: bool,
        now: Time,
    ) -> Vec<GatewayAsks> {
        if self.primary != Some(primary) {
            self.primary = Some(primary);
            self.heard_at = now;
            self.touches.clear();
            self.resume();
        }
        let pause = if self.waits() { ASKED } else { TOUCH };
        let has_much = self.unsaid >= UNSAID_MAX && !mutant!("tree_says_late_what_it_has");
        let is_due = now - self.sent_at >= pause || !self.is_told || has_much;
        let last = self.last();
        let mut asks = Vec::new();
        let knows = self.life.is_some();
        let has_more = |it: &Stream<O>| knows && (it.sent < last || !it.unsent.is_empty());
        while has_more(self) || (is_due && asks.is_empty()) {
            self.touch += 1;
            self.note_touch(now);
            let (first, commands) = self.next_commands();
            let questions = if knows { self.next_questions(now) } else { Vec::new() };
            let (touch, turn, acked, life) = (self.touch, self.turn, self.acked, self.life);
            asks.push(GatewayAsks {
                touch,
                turn,
                life,
                seen,
                follows,
                acked,
                first,
                commands,
                questions,
            });
        }
        if !asks.is_empty() {
            (self.sent_at, self.is_told, self.unsaid) = (now, true, 0);
        }
        invariant!(self.sent >= self.acked, "what is answered was sent");
        asks
    }

    /// Remembers when a touch was sent. The oldest stay, as they are confirmed first; the newest
    /// stays, so that what is confirmed after a long silence is not as old as that.
    fn note_touch(&mut self, now: Time) {
        if self.touches.len() >= TOUCHES_MAX {
            match mutant!("tree_forgets_the_oldest_touch") {
                true => self.touches.pop_front(),
                false => self.touches.pop_back(),
            };
        }
        self.touches.push_back((self.touch, now));
    }

    fn next_commands(&mut self) -> (u64, Vec<Command>) {
        let first = self.sent + 1;
        if self.life.is_none() {
            return (first, Vec::new());
        }
        let skipped = (self.sent - self.acked) as usize;
        let (mut bytes, mut commands) = (0, Vec::new());
        for (command, size, _) in self.commands.iter().skip(skipped) {
            let is_full = commands.len() >= ASK_MAX || bytes + size > ASK_BYTES_MAX;
            if is_full && !commands.is_empty() {
                break;
            }
            bytes += size;
            commands.push(command.clone());
        }
        self.sent += commands.len() as u64;
        (first, commands)
    }

    fn next_questions(&mut self, now: Time) -> Vec<OpenQuestion> {
        let (mut bytes, mut questions) = (0, Vec::new());
        while questions.len() < ASK_MAX
            && bytes < ASK_BYTES_MAX
            && let Some(number) = self.unsent.pop_first()
        {
            let Some(open) = self.questions.get_mut(&number) else { continue };
            open.asked_at = now;
            bytes += if mutant!("tree_asks_without_bound") { 0 } else { open.question.bytes() };
            let after = if mutant!("tree_read_overtakes_write") { 0 } else { open.after };
            questions.push(OpenQuestion { number, after, question: open.question.clone() });
        }
        questions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use quorate_kernel::time::Span;

    #[test]
    fn so_many_touches_are_remembered_the_oldest_and_the_newest() {
        let primary = NodeId(1);
        let at = |touch: u64| Time(0) + Span(touch * TOUCH.0);
        let mut stream = Stream::<()>::new(Time(0));
        for touch in 1..=1000 {
            assert_eq!(stream.asks(primary, 0, false, at(touch))[0].touch, touch);
        }
        assert_eq!(stream.touches.len(), TOUCHES_MAX);
        for (confirmed, known) in [(5, 5), (999, TOUCHES_MAX as u64 - 1), (1000, 1000)] {
            stream.heard(primary, confirmed, false, at(1000));
            assert_eq!(stream.confirmed, at(known), "of {confirmed}");
        }
        assert!(stream.touches.is_empty());
    }
    #[test]
    fn that_much_has_come_is_said_at_once() {
        let (primary, mut stream) = (NodeId(1), Stream::<()>::new(Time(0)));
        assert_eq!(stream.asks(primary, 0, false, Time(1)).len(), 1);
        stream.has_come(UNSAID_MAX - 1);
        assert!(stream.asks(primary, 0, false, Time(1)).is_empty());
        stream.has_come(1);
        assert_eq!(stream.asks(primary, 0, false, Time(1)).len(), 1);
        assert!(stream.asks(primary, 0, false, Time(1)).is_empty());
    }

    #[test]
    fn what_comes_slowly_is_not_asked_anew_each_time() {
        let (primary, mut stream) = (NodeId(1), Stream::<()>::new(Time(0)));
        stream.begin_life(1, 0);
        for _ in 0..20 {
            stream.command(Command::NOTHING, 1, None, Time(0));
        }
        // The link takes half a second for an answer, and four are on it: those of a turn come
        // before any of the next.
        let (mut on_way, mut at) = (VecDeque::new(), Time(0));
        for _ in 0..300 {
            let asks = stream.asks(primary, 0, false, at);
            if let Some(ask) = asks.iter().find(|ask| !ask.commands.is_empty()) {
                on_way.extend((ask.first..ask.first + 4).map(|number| (ask.turn, number)));
            }
            at = at + Span::millis(50);
            if at.0 % Span::millis(500).0 == 0
                && let Some((turn, number)) = on_way.pop_front()
            {
                stream.is_late(turn, at);
                if turn == stream.turn && stream.done(number, at).is_some() {
                    on_way.push_back((turn, number + 4));
                }
            }
            stream.heard(primary, stream.touch, false, at);
            stream.tick(at);
        }
        assert_eq!((stream.acked, stream.turn), (20, 2), "all were asked anew once");
    }
}
