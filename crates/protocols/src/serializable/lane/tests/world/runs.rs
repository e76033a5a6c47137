//! A world that goes on: until something holds, or a client is answered.

use super::{Host, World};
use crate::serializable::lane::groups::hosted::Hosted;
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use std::format;
use std::string::String;
use std::vec::Vec;

impl World {
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
    pub fn run_to(&mut self, most: Span, mut holds: impl FnMut(&World) -> bool) -> bool {
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
    pub fn run_until(&mut self, most: Span, mut holds: impl FnMut(&mut World) -> bool) -> bool {
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

    /// How each group stands at each host.
    pub fn show(&self) -> Vec<String> {
        let of = |host: &Host| {
            let groups = host.process.iter().flat_map(|process| &process.groups);
            let line = |(group, its): (&GroupId, &Hosted)| {
                let (log, member) = (&its.replica, &its.member);
                let (status, view) = (log.status(), log.view());
                let ends = (log.commit(), log.applied(), log.log().end());
                let led = (log.is_serving(), member.leads(), member.in_hand(), log.owes());
                let head = &its.state.head;
                let votes = (&head.pending, &head.taken_back, &head.revoked);
                let votes =
                    if member.leads() { format!("{votes:?} {member:?}") } else { String::new() };
                format!("{} {group:?} {status:?} {view:?} {ends:?} {led:?} {votes}", host.me)
            };
            groups.map(line).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(of).collect()
    }
}
