//! What keeps the roll: one of its kinds, behind one seam. The lane gives it time and messages,
//! carries out what it asks for, and decides who comes and goes.

use super::Says;
use crate::membership::{Configuration, Member, RollId};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Debug;
use quorate_kernel::effects::{Recipients, Release};
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::process::{Inspect, Table};
use quorate_kernel::ring::Ring;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};

/// How a host stands on the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// It is not on it, and does not try to be.
    Away,
    /// It asks to be let in.
    Joining,
    /// It is on it.
    Member {
        /// Whether it knows of no change that waits for others, and of nothing that it may have
        /// missed.
        goes_on: bool,
    },
    /// It was on it, and under this name is never again.
    Out,
}

/// What a keeper tells its lane.
#[derive(Debug)]
pub(super) enum RollNews {
    /// Others have removed this host, or do not let it in, under this name.
    Removed,
    /// A host is found under this name.
    Named { name: NodeId, host: NodeId },
}

/// One thing that a keeper asks for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Writes a key of the lane, as protocol state, or deletes it.
    Write {
        key: Bytes,
        value: Option<Bytes>,
    },
    /// Sends a message.
    Send {
        /// How often this host had come before: its name as the receiver shall know it.
        coming: u64,
        /// Names on the roll; hosts where no name is known.
        to: Recipients,
        /// Whether a host takes it also under another name.
        is_for_any: bool,
        says: Says,
        release: Release,
    },
    Tell(RollNews),
    /// A message said what no correct peer says; nothing was changed.
    Refuse(&'static str),
}

/// Who says something.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub host: Incarnation,
    /// Its name on the roll.
    pub name: NodeId,
}

/// All that a keeper may see and touch. Built anew for each call.
pub(super) struct Keeping<'a> {
    /// Which host this is, in this start.
    pub me: Incarnation,
    /// How often it has come before.
    pub coming: u64,
    pub now: Time,
    pub table: &'a dyn Table,
    pub ring: &'a Ring,
    pub rng: &'a mut Rng,
    /// What is asked for, in order.
    pub asks: Vec<Wanted>,
}

impl Keeping<'_> {
    /// This host as the others shall know it.
    pub fn own(&self) -> Member {
        super::names::member(self.me.node, self.coming)
    }

    pub fn write(&mut self, key: Bytes, value: Bytes) {
        self.asks.push(Wanted::Write { key, value: Some(value) });
    }

    pub fn delete(&mut self, key: Bytes) {
        self.asks.push(Wanted::Write { key, value: None });
    }

    /// A message of a host that keeps the roll in another way.
    pub fn refuse_kind(&mut self) {
        let what = "the roll is kept in another way there: membership.roll differs";
        self.asks.push(Wanted::Refuse(what));
    }

    pub fn tell(&mut self, told: RollNews) {
        self.asks.push(Wanted::Tell(told));
    }
}

/// One kind of roll.
pub(super) trait Keeper: Debug {
    /// The time between two ticks.
    fn every(&self) -> Span;

    /// Runs once, before anything else. `founding` is what the cluster was born with, at a host
    /// that was there and has never come again.
    fn start(&mut self, founding: Option<Configuration>, cx: &mut Keeping<'_>);

    /// Begins under another name: `cx.coming` is one more than before.
    fn come_again(&mut self, cx: &mut Keeping<'_>);

    /// Time passes.
    fn tick(&mut self, cx: &mut Keeping<'_>);

    /// A message has come. `whom` is the name that it is for; none if it is for this host under any
    /// name.
    fn on_message(&mut self, from: From, whom: Option<NodeId>, says: Says, cx: &mut Keeping<'_>);

    /// This host wants to be on the roll, or has lost touch: these may be asked.
    fn join(&mut self, contacts: &[NodeId], cx: &mut Keeping<'_>);

    /// This host wants to be on the roll no more.
    fn leave(&mut self, cx: &mut Keeping<'_>);

    /// A member shall be removed whose host has left the cluster.
    fn send_away(&mut self, name: NodeId, cx: &mut Keeping<'_>);

    /// The newest configuration that is known here.
    fn configuration(&self) -> &Configuration;

    /// Which one that is.
    fn roll(&self) -> RollId {
        self.configuration().id
    }

    /// Whether this host is on the roll, as far as it knows.
    fn is_member(&self) -> bool;

    /// How this host stands.
    fn stands(&self, now: Time) -> Stands;

    /// Whether what it tells of one number is the same at all hosts, for sure.
    fn is_certain(&self) -> bool;

    /// Shows what only this kind has.
    fn inspect(&self, into: &mut dyn Inspect);

    /// Asserts what must hold between two calls.
    fn check(&self);
}
