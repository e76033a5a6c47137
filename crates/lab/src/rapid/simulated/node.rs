//! A roll as a lane of its own, with nothing beside it.

use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::process::{Context, Process, Recovery, Request};
use quorate_kernel::time::Span;
use quorate_protocols::membership::{
    self, Action, Configuration, Member, Message, Roll, TICK, carry_out,
};

/// How a node begins.
#[derive(Debug)]
pub enum Birth {
    /// As a member of this configuration.
    Founds(Configuration),
    /// As one that asks these to be let in.
    Joins(Vec<NodeId>),
}

/// A node.
#[derive(Debug)]
pub struct Node {
    roll: Roll,
    birth: Option<Birth>,
    actions: Vec<Action>,
}

/// What a node says of itself: an address as long as one of a real host.
#[must_use]
pub fn member(id: NodeId, index: usize) -> Member {
    let address = format!("10.{}.{}.{}:7411", index >> 16 & 255, index >> 8 & 255, index & 255);
    Member { id, address, metadata: Vec::new() }
}

impl Node {
    /// A node before its start.
    #[must_use]
    pub fn new(own: Member, birth: Birth) -> Node {
        Node { roll: Roll::new(own), birth: Some(birth), actions: Vec::new() }
    }

    /// Its roll.
    #[must_use]
    pub fn roll(&self) -> &Roll {
        &self.roll
    }

    fn act(
        &mut self,
        cx: &mut Context<'_, Node>,
        act: impl FnOnce(&mut Roll, &mut membership::Context<'_>),
    ) {
        let (me, now, table) = (cx.me, cx.now, cx.table);
        act(&mut self.roll, &mut membership::Context { me, now, table, out: &mut self.actions });
        // What a lane would be told, those who look on read off the roll.
        drop(carry_out(&mut self.actions, cx.fx, |message| message));
    }
}

impl Process for Node {
    type Message = Message;
    type Timer = ();

    fn start(&mut self, _: Recovery, cx: &mut Context<'_, Node>) {
        // Ticks of different nodes do not fall together.
        let first = Span(cx.rng.below(TICK.0));
        cx.fx.arm((), cx.now + first);
        match self.birth.take() {
            Some(Birth::Founds(founding)) => {
                self.act(cx, |roll, cx| roll.start(Some(founding), cx));
            }
            Some(Birth::Joins(contacts)) => self.act(cx, |roll, cx| {
                roll.start(None, cx);
                roll.join(&contacts, cx).expect("it is new, and has somebody to ask");
            }),
            None => {}
        }
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_, Node>) {
        self.act(cx, |roll, cx| roll.on_message(from, message, cx));
    }

    fn on_request(&mut self, _: Ticket, _: Request, _: &mut Context<'_, Node>) {}

    fn on_timer(&mut self, (): (), cx: &mut Context<'_, Node>) {
        cx.fx.arm((), cx.now + TICK);
        self.act(cx, Roll::tick);
    }
}
