//! What a node does with what it hears.

use super::action::Action;
use super::clock::Judgement;
use super::event::{Ball, Copied};
use super::key::EventKey;
use super::message::{self, Message};
use super::node::Epto;
use super::order::{Rules, Taken};
use super::payloads::Arrived;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

impl Epto {
    /// A message has come.
    pub fn on_message(&mut self, from: NodeId, message: &Message, out: &mut Vec<Action>) {
        match message {
            Message::Ball(ball) => self.on_ball(from, ball, out),
            Message::Pull(keys) => self.on_pull(from, keys, out),
            Message::Payloads(payloads) => self.on_payloads(from, payloads),
        }
    }

    /// A ball has come.
    pub fn on_ball(&mut self, from: NodeId, ball: &Ball, out: &mut Vec<Action>) {
        let before = self.clock.now();
        invariant!(self.is_bounded(), "what waits is bounded");
        match self.clock.judge(from, ball.highest(), self.round, self.peers) {
            Judgement::Sound => {}
            Judgement::Unknown => {
                self.is_deaf = true;
                return;
            }
            Judgement::Refused => {
                probe!("epto/clock_refused");
                if !self.has_place() {
                    self.leave_aside(ball.highest());
                }
                self.counters.clocks_refused += 1;
                out.push(Action::Refuse { peer: from });
                return;
            }
            Judgement::Behind => {
                probe!("epto/behind");
                self.lose_place(out);
            }
        }
        if !self.has_place() {
            self.begin_to_hear();
        }
        let rules = self.rules();
        for copy in &ball.0 {
            self.take_copy(from, copy, &rules, out);
        }
        invariant!(self.is_bounded(), "what waits is bounded");
        invariant!(self.clock.now() >= before, "a clock does not go back");
    }

    fn take_copy(&mut self, from: NodeId, copy: &Copied, rules: &Rules, out: &mut Vec<Action>) {
        let (event, ttl) = (&copy.event, copy.ttl);
        self.counters.copies += 1;
        self.ttl_heard = self.ttl_heard.max(event.ttl_max);
        if ttl >= rules.ttl_of(event) {
            // It has moved the clock: that is all an old copy is good for.
            if mutant!("epto_old_copy_accepted") && self.order.take_unseen(event, ttl, rules) {
                self.payloads.want(event);
            }
            return;
        }
        match self.order.take(event, ttl, rules) {
            Taken::New => self.payloads.want(event),
            Taken::Known | Taken::Settled => {}
            Taken::Late if self.has_place() => {
                probe!("epto/late");
                self.counters.late += 1;
                out.push(Action::Late { event: *event });
            }
            Taken::Late => {}
            Taken::Crowded => {
                probe!("epto/crowded");
                self.counters.crowded += 1;
            }
            Taken::Conflict => {
                self.counters.damaged += 1;
                return;
            }
        }
        if copy.is_held {
            self.payloads.offer(&event.key, from);
        }
        self.next_ball.keep(*event, ttl, rules.events_max);
    }

    /// A peer asks for payloads.
    pub fn on_pull(&mut self, from: NodeId, keys: &[EventKey], out: &mut Vec<Action>) {
        let bytes = self.payloads.bytes();
        invariant!(from != self.me.node, "nobody asks itself");
        let answer = message::Payloads::answer(keys, |key| self.payloads.get(key));
        out.push(Action::Send { to: Vec::from([from]), message: Message::Payloads(answer) });
        invariant!(self.payloads.bytes() == bytes, "what is sent stays");
    }

    /// Payloads that this node has asked for, or what it calls so.
    pub fn on_payloads(&mut self, from: NodeId, payloads: &message::Payloads) {
        let bytes_max = self.parameters.held_bytes_max;
        let wanted = self.payloads.wanted();
        invariant!(self.is_bounded(), "what waits is bounded");
        for (key, payload) in payloads.pieces() {
            self.counters.payload_bytes += payload.len() as u64;
            let is_first = self.order.first() == Some(key);
            match self.payloads.arrive(key, payload, is_first, bytes_max) {
                Arrived::Taken | Arrived::Unwanted => {}
                Arrived::NoRoom => self.counters.crowded += 1,
                Arrived::Wrong => {
                    // Somebody else may have the right one.
                    self.counters.damaged += 1;
                    self.payloads.on_absent(&key, from);
                }
            }
        }
        for key in &payloads.absent {
            probe!("epto/absent");
            self.payloads.on_absent(key, from);
        }
        invariant!(self.payloads.wanted() <= wanted, "an answer makes nothing wanted");
    }
}
