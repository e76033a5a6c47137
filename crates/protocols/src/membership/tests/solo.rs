//! One node alone, whose peers are played by the test.

use super::node::{Happened, Node, member};
use crate::membership::observe::Rings;
use crate::membership::{
    Alert, Body, Change, Configuration, Event, Message, Roll, RollId, Round, Shape, TICK,
};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::time::Time;
use std::sync::Arc;
use std::vec::Vec;

/// A member of a roll. Node 1; the others are 2 and so on.
pub struct Solo {
    pub node: Node,
    pub now: Time,
    /// What has left it, to itself too, and was not looked at.
    sent: Vec<(NodeId, Body)>,
    pub told: Vec<Event>,
    pub refused: Vec<&'static str>,
    pub configuration: Configuration,
    round: Round,
}

impl Solo {
    pub fn new(members: u64) -> Solo {
        let founders: Vec<_> = (1..=members).map(member).collect();
        let founding = Configuration::founding(Shape::DEFAULT, &founders).expect("it is sound");
        let mut solo = Solo {
            node: Node::new(1, Some(founding.clone()), Vec::new()),
            now: Time(0),
            sent: Vec::new(),
            told: Vec::new(),
            refused: Vec::new(),
            configuration: founding,
            round: Round::NONE,
        };
        let happened = solo.node.start(solo.now);
        solo.after(happened);
        solo.sync();
        solo
    }

    fn after(&mut self, happened: Vec<Happened>) {
        for one in happened {
            match one {
                Happened::Sent { to, message } => self.sent.push((to, message.body)),
                Happened::Told(event) => self.told.push(event),
                Happened::Refused(what) => self.refused.push(what),
            }
        }
    }

    pub fn sync(&mut self) {
        let happened = self.node.sync();
        self.after(happened);
    }

    pub fn roll(&self) -> &Roll {
        self.node.roll.as_ref().expect("it is up")
    }

    /// A peer says something, in the configuration that the test knows; the disk does not sync.
    pub fn hear_unsynced(&mut self, from: u64, roll: RollId, body: Body) {
        let from = Incarnation { node: NodeId(from), start: Start(1) };
        let message = Message { roll, body };
        let tail = message.tail();
        let message = message.with_tail(&tail).expect("it can be read");
        let happened = self.node.turn(self.now, |roll, cx| roll.on_message(from, message, cx));
        self.after(happened);
    }

    pub fn hear(&mut self, from: u64, body: Body) {
        self.hear_unsynced(from, self.configuration.id, body);
        self.sync();
    }

    pub fn turn(&mut self, handler: impl FnOnce(&mut Roll, &mut crate::membership::Context<'_>)) {
        let happened = self.node.turn(self.now, handler);
        self.after(happened);
        self.sync();
    }

    pub fn tick_ms(&mut self, millis: u64) {
        for _ in 0..millis / TICK.as_millis() {
            self.now = self.now + TICK;
            self.turn(Roll::tick);
        }
    }

    /// The node is restarted with what its disk has synced.
    pub fn restart(&mut self) {
        self.node.crash();
        self.sent.clear();
        self.round = Round::NONE;
        let happened = self.node.start(self.now);
        self.after(happened);
    }

    /// What each observer of a node would report.
    pub fn edges(&self, subject: u64) -> Vec<(u64, Alert)> {
        let subject = NodeId(subject);
        let rings = Rings::of(&self.configuration);
        let alert =
            |observer| Alert { subject, rings: rings.between(observer, subject), member: None };
        let observers = rings.observers_of(subject).into_iter();
        observers.map(|observer| (observer.0, alert(observer))).collect()
    }

    /// All observers of a member report it.
    pub fn report(&mut self, subject: u64) {
        for (observer, alert) in self.edges(subject) {
            self.hear(observer, Body::Alerts { alerts: Vec::from([alert]) });
        }
    }

    /// What it has said that this finds, each body once, however many it went to.
    pub fn said<T: PartialEq>(&mut self, find: impl Fn(&Body) -> Option<T>) -> Vec<T> {
        let mut found: Vec<T> = Vec::new();
        for (_, body) in self.sent.drain(..) {
            if let Some(one) = find(&body)
                && !found.contains(&one)
            {
                found.push(one);
            }
        }
        found
    }

    /// What it has said to a node, and takes it off; probes are left out.
    pub fn said_to(&mut self, to: u64) -> Vec<Body> {
        let is_probe = |body: &Body| matches!(body, Body::Probe { .. });
        let sent = std::mem::take(&mut self.sent);
        let mine = sent.into_iter().filter(|(at, body)| *at == NodeId(to) && !is_probe(body));
        mine.map(|(_, body)| body).collect()
    }

    /// Time passes until it begins a later round; its promise to itself is heard.
    pub fn begin_round(&mut self) -> Round {
        let last = self.round;
        let begins = |body: &Body| match body {
            Body::Phase1a { round } if *round > last => Some(*round),
            _ => None,
        };
        for _ in 0..1000 {
            self.tick_ms(TICK.as_millis());
            if let Some(round) = self.said(begins).first() {
                self.round = *round;
                self.hear(1, Body::Phase1a { round: *round });
                for body in self.said_to(1) {
                    self.hear(1, body);
                }
                return *round;
            }
        }
        panic!("it begins no round behind {last:?}");
    }
}

/// Who leaves.
pub fn removal(nodes: &[u64]) -> Arc<Change> {
    Arc::new(Change::new(Vec::new(), nodes.iter().copied().map(NodeId).collect()))
}
