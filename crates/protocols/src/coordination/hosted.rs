//! The group here: its log, its machine, its seat, and how each is told of the others.

use super::primary::Primary;
use super::timer::Timer;
use super::{Context, Coordination, GROUP, Message, Settings};
use crate::coordination::tree::{Command, LIFE_MAX, Tree, whole};
use crate::groups::{Hint, Leads, Seat};
use crate::smr::Replicated;
use crate::vsr::{self, Action, Event, Replica};
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;
use quorate_kernel::time::{Span, Time};

/// How often all hosts are told who leads the group.
const SPREAD: Span = Span::secs(1);

/// The group on this node.
#[derive(Debug)]
pub struct Hosted {
    /// This node.
    pub me: NodeId,
    /// Its log.
    pub replica: Replica,
    /// What the log makes of it.
    pub machine: Replicated<Tree>,
    /// What it has in hand if it leads, and serves.
    pub primary: Option<Primary>,
    /// Who should be the members, and who counts on this node.
    pub seat: Seat,
    /// Where nodes that end by themselves are looked for next.
    pub reaped: String,
    /// When all hosts are told again that this node leads.
    pub told: Time,
}

impl Hosted {
    fn new(me: NodeId, now: Time, settings: &Settings) -> Hosted {
        let settings = vsr::Settings {
            durability: settings.durability,
            kept: settings.kept,
            in_flight_bytes: VSR_IN_FLIGHT_BYTES_MAX,
            by_membership: false,
        };
        Hosted {
            me,
            replica: Replica::new(GROUP, me, settings),
            machine: Replicated::new(GROUP),
            primary: None,
            seat: Seat::new(now),
            reaped: String::new(),
            told: Time(0),
        }
    }

    /// Whether this node leads the group, and serves.
    pub fn leads(&self) -> bool {
        self.primary.is_some()
    }

    /// Which life of the tree this is, as far as it was executed here.
    pub fn life(&self) -> u64 {
        self.replica.configuration().life.0
    }

    /// This node leads from now on.
    fn serve(&mut self, now: Time) {
        let mut primary = Primary::new(self.replica.view(), now);
        let life = self.life();
        invariant!(life <= LIFE_MAX, "a group has lost data too often: make another keyspace");
        if whole(self.machine.objects()).life < life {
            // Before all that anybody asks in this life.
            primary.add_own(Command::Begin { life });
        }
        self.primary = Some(primary);
    }
}

impl Coordination {
    /// Starts the group here. Of what is not stored founders begin, and others learn.
    pub(super) fn start_group(
        &mut self,
        founders: Option<&[NodeId]>,
        recovery: Recovery,
        cx: &mut Context<'_>,
    ) {
        self.hosted = Some(Hosted::new(cx.me.node, cx.now, &self.settings));
        self.call(cx, |log, on| log.start(founders, recovery, on));
        self.see(cx);
    }

    /// Calls the replica, and hands on what it tells.
    pub(crate) fn call(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>),
    ) {
        let Some(hosted) = &mut self.hosted else { return };
        self.is_touched = true;
        let mut out = Vec::new();
        let (me, now, table) = (cx.me, cx.now, cx.table);
        let machine = &mut hosted.machine;
        call(&mut hosted.replica, &mut vsr::Context { me, now, table, machine, out: &mut out });
        let mut told = Vec::new();
        for action in out {
            match action {
                Action::Write { class, key, value } => cx.fx.write(class, key, value),
                Action::Send { to, message, release } => {
                    self.outbox.push(GROUP, to, message, &release);
                }
                Action::Tell(event) => told.push(event),
                Action::Resume => {
                    self.is_resumed = true;
                    cx.fx.arm(Timer::Again, cx.now);
                }
                Action::Refuse(what) => cx.fx.refuse(what),
            }
        }
        self.hand_on(told, cx);
    }

    fn hand_on(&mut self, told: Vec<Event>, cx: &mut Context<'_>) {
        let Some(hosted) = &mut self.hosted else { return };
        let executed = hosted.machine.take_executed();
        if told.contains(&Event::Deposed) {
            // Whoever waits asks the next one.
            hosted.primary = None;
            hosted.seat.depose();
        }
        self.executed(&executed);
        for event in told {
            match event {
                Event::Serving => {
                    if let Some(hosted) = &mut self.hosted {
                        hosted.serve(cx.now);
                    }
                    self.spread(cx);
                }
                Event::Readable(ticket) => self.readable(ticket, cx),
                Event::Members(_) => self.see(cx),
                Event::Released => {
                    if let Some(hosted) = &mut self.hosted {
                        hosted.seat.release();
                    }
                }
                Event::Lost => {
                    probe!("coordination/lost");
                    self.losses += 1;
                }
                Event::Deposed => {}
            }
        }
    }

    /// A tick of the group.
    pub(super) fn tick_group(&mut self, cx: &mut Context<'_>) {
        let Some(hosted) = &mut self.hosted else { return };
        hosted.replica.note_left(|node| self.hosts.has_left(node));
        self.call(cx, Replica::tick);
        self.see(cx);
        let is_due = |it: &Hosted| it.leads() && cx.now - it.told >= SPREAD;
        if self.hosted.as_ref().is_some_and(is_due) {
            self.spread(cx);
            self.tick_seat(cx);
        }
        self.tick_primary(cx);
        self.tick_outside(cx);
    }

    /// What the replica here knows of its group is known to who asks for clients.
    pub(crate) fn see(&mut self, cx: &mut Context<'_>) {
        let Some(hosted) = &self.hosted else { return };
        let (members, view) = (&hosted.replica.configuration().members, hosted.replica.view());
        if members.is_empty() {
            return;
        }
        let (members, serves) = (members.clone(), hosted.leads());
        self.learn(None, &Leads { group: GROUP, members, view, serves }, cx);
    }

    /// Another host says where the primary is, or the replica here.
    pub(crate) fn learn(&mut self, from: Option<NodeId>, leads: &Leads, cx: &mut Context<'_>) {
        let hint = self.routes.learn(from, leads, cx.now);
        if hint == Hint::News {
            self.gateway.renew();
        }
        if hint == Hint::Claim {
            let known = self.routes.known(GROUP);
            let others: Vec<NodeId> =
                known.iter().copied().filter(|node| *node != cx.me.node).collect();
            if !others.is_empty() {
                // A question promises nothing.
                cx.fx.send_early(&others.into(), Message::WhoLeads { group: GROUP });
            }
        }
    }

    /// This node leads the group: all hosts that may ask are told. It is a hint, and promises
    /// nothing.
    fn spread(&mut self, cx: &mut Context<'_>) {
        self.see(cx);
        if let Some(hosted) = &mut self.hosted {
            hosted.told = cx.now;
        }
        let mut hosts: Vec<NodeId> = self.routes.members().chain(self.hosts.there()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|node| *node != cx.me.node);
        if let Some(leads) = self.leads().filter(|_| !hosts.is_empty()) {
            cx.fx.send_early(&hosts.into(), Message::Leads(leads));
        }
    }

    /// Tells somebody who seems to lead: a hint.
    pub(crate) fn say_who_leads(&mut self, to: Incarnation, cx: &mut Context<'_>) {
        if let Some(leads) = self.leads().filter(|_| to.node != cx.me.node) {
            // It promises nothing.
            cx.fx.send_early(to, Message::Leads(leads));
        }
    }
}
