//! What of a stream is heard, and what is asked again for want of it.

use super::{PATIENCE, SILENT, Source, Stream, TOUCH, WAIT_MAX, is_ahead};
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

impl<O> Stream<O> {
    /// A command was executed: who waits for it, if that was not known before. Answers come in
    /// order; one that has come again is no news.
    pub fn done(&mut self, number: u64, now: Time) -> Option<Option<O>> {
        if number != self.acked + 1 {
            return None;
        }
        // Where an answer takes long, the next one may: a link that is slow is not a dead one.
        let took = now - self.oldest;
        self.wait = match mutant!("tree_asks_slow_links_anew") {
            true => SILENT,
            false => Span(2 * took.0).clamp(SILENT, WAIT_MAX),
        };
        self.oldest = now;
        let (command, bytes, origin) = self.commands.pop_front()?;
        self.acked = number;
        match is_ahead(&command) {
            true => self.ahead -= 1,
            false => self.bytes -= bytes,
        }
        self.sent = self.sent.max(number);
        Some(origin)
    }

    /// So many bytes of an answer of a command have come: the primary is to know that soon, as it
    /// tells so much at a time.
    pub fn has_come(&mut self, bytes: usize) {
        self.unsaid = self.unsaid.saturating_add(bytes);
    }

    /// Something of this turn has come. If that is an earlier one, the link is slow, and what was
    /// asked anew is behind it: that was not to be heard yet.
    pub fn is_late(&mut self, turn: u64, now: Time) {
        if turn < self.turn && !mutant!("tree_asks_slow_links_anew") {
            self.oldest = self.oldest.max(now);
        }
    }

    /// Whether a message of a primary is the next one of this turn. If it is of this turn and a
    /// later one, or of somebody who has begun anew in it, something is missing, and everything is
    /// asked anew.
    pub fn is_next(&mut self, source: Source, turn: u64, number: u64) -> bool {
        if turn != self.turn {
            return mutant!("tree_hears_earlier_turns");
        }
        let is_same = self.source.is_none_or(|known| known == source)
            || mutant!("tree_hears_two_primaries_as_one");
        if is_same && number <= self.number {
            // It has come before.
            return mutant!("tree_hears_twice");
        }
        let is_next = is_same && number == self.number + 1;
        if !is_next && !mutant!("tree_misses_a_message") {
            self.resume();
            return false;
        }
        (self.source, self.number) = (Some(source), number);
        true
    }

    /// A message of the primary says which of this gateway's it has heard last, so that a majority
    /// has followed it since. Or it tells something, which rests on a majority too: on a slow link
    /// several come of one touch, long after each other. Who leads no more has soon told all that
    /// it knew, and names no new touch.
    pub fn heard(&mut self, from: NodeId, touch: u64, tells: bool, now: Time) {
        if self.primary != Some(from) {
            return;
        }
        let is_word = tells && !mutant!("tree_leaves_who_tells_slowly");
        if is_word || mutant!("tree_hears_who_leads_no_more") {
            self.heard_at = now;
        }
        while let Some((number, at)) = self.touches.front().copied()
            && number <= touch
        {
            (self.named, self.confirmed) = (number, self.confirmed.max(at));
            self.heard_at = now;
            self.patience = PATIENCE;
            self.touches.pop_front();
        }
    }

    /// When a touch was sent, or the newest before it of which that is known: of those before the
    /// newest that an answer has named it is not.
    pub fn sent(&self, touch: u64) -> Option<Time> {
        let until = self.touches.iter().take_while(|(number, _)| *number <= touch);
        let named = (0 < self.named && self.named <= touch).then_some(self.confirmed);
        until.last().map(|(_, at)| *at).or(named)
    }

    /// What was asked long ago is asked again. Answers whether the primary has said nothing for
    /// longer than one that is there: another one is asked then.
    pub fn tick(&mut self, now: Time) -> Option<NodeId> {
        for (number, open) in &mut self.questions {
            if open.asked_at > Time(0) && now - open.asked_at >= Span(2 * self.wait.0) {
                self.unsent.insert(*number);
            }
        }
        if !self.commands.is_empty() && now - self.oldest >= self.wait {
            self.oldest = now;
            self.wait = Span(2 * self.wait.0).min(WAIT_MAX);
            self.resume();
        }
        let patience = if self.waits() { self.patience } else { Span(2 * TOUCH.0 + SILENT.0) };
        let silent = self.primary.filter(|_| now - self.heard_at >= patience)?;
        self.heard_at = now;
        self.patience = Span(2 * self.patience.0).min(WAIT_MAX);
        Some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::tree::Command;

    #[test]
    fn who_tells_something_slowly_is_not_left() {
        let (primary, mut stream) = (NodeId(1), Stream::<()>::new(Time(0)));
        stream.begin_life(1, 0);
        stream.command(Command::NOTHING, 1, None, Time(0));
        assert_eq!(stream.asks(primary, 0, false, Time(0))[0].touch, 1);
        // A large answer is on its way in four messages, all of which name one touch.
        let mut at = Time(0);
        for _ in 0..4 {
            at = at + Span::millis(500);
            assert_eq!(stream.tick(at), None);
            stream.heard(primary, 1, true, at);
        }
        assert_eq!(stream.confirmed, Time(0), "it has led when that touch was sent");
        assert_eq!(stream.tick(at + Span(PATIENCE.0 - 1)), None);
        // Who says that it is there, and no more, may lead no more.
        for _ in 0..6 {
            at = at + Span::millis(100);
            stream.heard(primary, 1, false, at);
        }
        assert_eq!(stream.tick(at), Some(primary));
    }
}
