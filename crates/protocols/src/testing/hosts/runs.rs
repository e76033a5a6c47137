//! A world that goes on: until something holds, or a client is answered.

use super::{Simulated, World};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;

impl<P: Simulated> World<P> {
    /// Everything happens that is due within this time.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some((at, event)) = self.events.pop(end) {
            self.now = at.max(self.now);
            self.happen(event);
        }
        self.now = end;
    }

    /// Runs to the very event after which something holds, for some time at most; whether it does.
    pub fn run_to(&mut self, most: Span, mut holds: impl FnMut(&World<P>) -> bool) -> bool {
        let end = self.now + most;
        while !holds(self) {
            let Some((at, event)) = self.events.pop(end) else { return false };
            self.now = at.max(self.now);
            self.happen(event);
        }
        true
    }

    /// All between two hosts is lost, both ways.
    pub fn part(&mut self, one: usize, other: usize) {
        self.cut.extend([(one, other), (other, one)]);
    }

    /// Runs until something holds, for some time at most; whether it does.
    pub fn run_until(&mut self, most: Span, mut holds: impl FnMut(&mut World<P>) -> bool) -> bool {
        let end = self.now + most;
        while self.now < end {
            if holds(self) {
                return true;
            }
            self.run(Span::millis(5));
        }
        holds(self)
    }

    /// A client asks, and waits.
    pub fn ask(&mut self, at: usize, operation: Operation, within: Span) -> Outcome {
        let ticket = self.request(at, operation, within);
        let most = Span(within.0 + Span::secs(1).0);
        let told =
            self.run_until(most, |world| world.answers.iter().any(|(_, of, _)| *of == ticket));
        assert!(told, "every question is answered by its deadline");
        let place = self.answers.iter().position(|(_, of, _)| *of == ticket);
        self.answers.remove(place.expect("it was answered")).2
    }
}
