//! The engine as a process: the one match on inputs.

use super::message::Message;
use super::state::{Context, Coordination, session_reads, timeouts};
use super::timer::Timer;
use crate::vsr::{Replica, TICK};
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::time::Time;
use quorate_kernel::watch::Watch;

impl Coordination {
    fn on_tick(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Tick, cx.now + TICK);
        let halts = !mutant!("tree_judges_before_it_hears");
        self.judged = if halts { self.ticked } else { cx.now };
        self.ticked = cx.now;
        let unread = self.unread.take().filter(|_| !mutant!("tree_judges_unread_clients"));
        let read = unread.map_or(self.judged, |since| since.min(self.judged));
        self.gateway.count(read, cx.now);
        self.tick_group(cx);
        self.tick_gateway(cx);
        self.tick_examined(cx);
    }

    fn on_turn_end(&mut self, cx: &mut Context<'_>) {
        self.gateway.turn_end();
        self.propose(cx);
        if core::mem::take(&mut self.is_touched) {
            self.call(cx, Replica::turn_end);
            if self.settings.session_reads {
                self.call(cx, Replica::tell_commit);
            }
            self.is_touched = false;
        }
        self.tell_gateways(cx);
        self.ask_primary(cx);
        self.outbox.flush(cx.fx, Message::Log);
    }
}

impl Process for Coordination {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[
        Topic::Ring,
        Topic::Roll,
        Topic::Keyspace,
        Topic::TurnEnd,
        Topic::Unlinked,
        Topic::Unread,
    ];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.recover(recovery, cx);
        cx.fx.arm(Timer::Tick, cx.now + TICK);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::Log(parts) => self.on_log(from, parts, cx),
            Message::Leads(leads) => self.learn(Some(from.node), &leads, cx),
            Message::WhoLeads { .. } => self.say_who_leads(from, cx),
            Message::Ask(ask) => self.on_ask(from, ask, cx),
            Message::Told(told) => self.on_told(from, told, cx),
            Message::Stand { question, leaver } => self.on_stand(from, question, leaver, cx),
            Message::Stands { question, stands } => self.on_stands(from, question, stands, cx),
            Message::Applied { life, touch, upto } => {
                self.on_applied(from, (life, touch, upto), cx);
            }
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, cx);
    }

    fn on_watch(&mut self, ticket: Ticket, watch: Watch, cx: &mut Context<'_>) {
        match watch {
            Watch::Session(connect) => self.connect(ticket, connect, cx),
            // Nothing was done.
            Watch::Cluster => cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported)),
        }
    }

    fn on_unwatch(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        self.disconnect(ticket, cx);
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Examine { from, leaver } => {
                self.examine(ticket, (from, leaver), deadline, cx);
            }
            // Nothing was done.
            _ => cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported)),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Tick => self.on_tick(cx),
            Timer::Again => {
                if core::mem::take(&mut self.is_resumed) {
                    self.call(cx, Replica::resume);
                }
            }
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::TurnEnd => self.on_turn_end(cx),
            News::Unlinked(peer) => self.unlinked(peer, cx),
            News::Unread(since) => self.unread = Some(since),
            News::Ring(ring) => self.hosts.see(ring, cx.now),
            News::Roll(roll) => self.hosts.follow(roll, cx.now),
            News::Keyspace(keyspace) => {
                self.settings.replicas = keyspace.replicas();
                self.settings.value_bytes_max = keyspace.value_bytes_max();
                self.settings.timeouts = timeouts(keyspace);
                if !mutant!("reads_stay_as_they_were") {
                    self.settings.session_reads = session_reads(keyspace);
                }
            }
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn parts(&self) -> alloc::vec::Vec<Part> {
        self.known_parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.show(into);
    }

    fn check(&self) {
        self.gateway.check();
        if let Some(hosted) = &self.hosted {
            hosted.replica.check();
            let is_leading = hosted.replica.is_serving();
            invariant!(is_leading || !hosted.leads(), "only who leads has questions in hand");
            if let Some(primary) = &hosted.primary {
                primary.check();
            }
        }
    }
}
