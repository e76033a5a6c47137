//! What a world is like, and what goes wrong in it.

use crate::epto::{Parameters, Scale};

/// The ticks of a round.
pub const DELTA: u64 = 1000;

/// What a world is like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub nodes: usize,
    pub seed: u64,
    /// Of a million messages so many are lost.
    pub lost_ppm: u32,
    /// The shortest and the longest time that a message takes, in ticks.
    pub latency: (u64, u64),
    pub payload_bytes: u64,
    pub parameters: Parameters,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// All messages to and from a node take so many rounds more, for as many rounds.
    Spike(usize, u64),
    /// A node stands still for so many rounds. What is sent to it waits, or is lost.
    Pause(usize, u64, Kept),
    /// A node stops for good.
    Stop(usize),
    /// A node broadcasts, sends one ball to one peer, and stops.
    StopAfterOneBall(usize),
    /// A node sends a ball of a time that nobody has reached.
    Bomb(usize),
    /// The nodes below this one and the others do not hear each other for so many rounds.
    Divide(usize, u64),
    /// A node starts again: with nothing, under a new start.
    Restart(usize),
}

/// What becomes of what is sent to a node that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    All,
    Nothing,
}

impl Shape {
    pub fn of(nodes: usize, seed: u64) -> Shape {
        let scale = Scale { nodes: nodes as u64, exponent: 2, surviving_ppm: 1_000_000 };
        Shape {
            nodes,
            seed,
            lost_ppm: 0,
            latency: (DELTA / 20, DELTA * 9 / 10),
            payload_bytes: 20,
            parameters: Parameters::of(scale),
        }
    }

    pub fn with_loss(mut self, lost_ppm: u32) -> Shape {
        let surviving_ppm = 1_000_000 - lost_ppm;
        let scale = Scale { nodes: self.nodes as u64, exponent: 2, surviving_ppm };
        (self.lost_ppm, self.parameters) = (lost_ppm, Parameters::of(scale));
        self
    }
}
