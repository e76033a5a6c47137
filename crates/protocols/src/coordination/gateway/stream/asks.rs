//! What is sent of a stream.

use super::{ASK_BYTES_MAX, ASK_MAX, ASKED, Stream, TOUCH};
use crate::coordination::message::{GatewayAsks, OpenQuestion};
use crate::coordination::tree::Command;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

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
        let is_due = now - self.sent_at >= pause || !self.is_told;
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
            (self.sent_at, self.is_told) = (now, true);
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
            stream.heard(primary, confirmed, at(1000));
            assert_eq!(stream.confirmed, at(known), "of {confirmed}");
        }
        assert!(stream.touches.is_empty());
    }
}
