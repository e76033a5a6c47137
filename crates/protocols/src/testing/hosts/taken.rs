//! Frames that a test takes from the links: they are lost, or come when the test lets them, as
//! often as it does.

use super::{Event, Simulated, World};
use quorate_kernel::ids::{Incarnation, Start};
use quorate_kernel::time::Span;
use quorate_kernel::wire::Body;
use std::boxed::Box;
use std::vec::Vec;

/// One frame on its way between two hosts.
#[derive(Clone)]
pub struct Taken<M> {
    /// Who has sent it.
    pub from: Incarnation,
    /// The place of the host that it is for.
    pub to: usize,
    /// For which start of it; any if it is 0.
    pub start: Start,
    /// What it says.
    pub message: M,
}

/// Whether a frame is taken, by the places of its sender and its receiver, and what it says.
type Takes<M> = Box<dyn Fn(usize, usize, &M) -> bool>;

/// What a test has taken from the links.
pub struct Tap<M> {
    takes: Option<Takes<M>>,
    /// The oldest first.
    pub taken: Vec<Taken<M>>,
}

impl<M> Default for Tap<M> {
    fn default() -> Tap<M> {
        Tap { takes: None, taken: Vec::new() }
    }
}

impl<M> Tap<M> {
    /// Whether a frame is to be taken.
    pub(super) fn takes(&self, at: usize, to: usize, message: &M) -> bool {
        self.takes.as_ref().is_some_and(|takes| takes(at, to, message))
    }
}

impl<P: Simulated> World<P> {
    /// Frames like these are taken from the links, from now on.
    pub fn take(&mut self, takes: impl Fn(usize, usize, &P::Message) -> bool + 'static) {
        self.tap.takes = Some(Box::new(takes));
    }

    /// No frames are taken any more. Returns those that were.
    pub fn taken(&mut self) -> Vec<Taken<P::Message>> {
        self.tap.takes = None;
        core::mem::take(&mut self.tap.taken)
    }

    /// A frame that was taken, or is made up, comes at once: nothing overtakes it any more.
    pub fn let_come(&mut self, taken: &Taken<P::Message>) {
        let body = Body::encode(&taken.message, &mut bytes::BytesMut::new()).expect("it fits");
        let (to, from, start) = (taken.to, taken.from, taken.start);
        self.happen(Event::Frame { to, from, start, body });
    }

    /// Runs until so many frames are taken.
    pub fn run_to_taken(&mut self, count: usize, most: Span) {
        let is_done = self.run_to(most, |world| world.tap.taken.len() >= count);
        assert!(is_done, "{} of {count} frames are taken", self.tap.taken.len());
    }
}
