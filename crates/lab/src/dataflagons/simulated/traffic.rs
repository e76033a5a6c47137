//! What nodes send to each other, by kind.

use quorate_protocols::epidemic::message::Message;
use quorate_protocols::epto;
use std::ops::{Index, IndexMut, Sub};

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Balls of EpTO.
    Ball,
    /// Payloads of events, and questions for them.
    Payload,
    /// Views: exchanges of Cyclon, and members of slices.
    View,
    /// What replicas tell the node that a client asked.
    Answer,
    /// Requests without order.
    Flask,
    /// Comparing replicas.
    Repair,
    /// Snapshots for nodes that join.
    Join,
    /// Events that were missed.
    Hole,
}

impl Kind {
    /// All of them, in their order.
    pub const ALL: [Kind; 8] = [
        Kind::Ball,
        Kind::Payload,
        Kind::View,
        Kind::Answer,
        Kind::Flask,
        Kind::Repair,
        Kind::Join,
        Kind::Hole,
    ];

    /// What a message is for.
    #[must_use]
    pub fn of(message: &Message) -> Kind {
        match message {
            Message::Epto(epto::Message::Ball(_)) => Kind::Ball,
            Message::Epto(epto::Message::Pull(_) | epto::Message::Payloads(_)) => Kind::Payload,
            Message::Shuffle { .. } | Message::ShuffleReply { .. } | Message::Members(_) => {
                Kind::View
            }
            Message::Did { .. } | Message::Flasked { .. } => Kind::Answer,
            Message::Flask(_) | Message::ListA(_) | Message::ListB(_) => Kind::Flask,
            Message::Compare { .. }
            | Message::Leaves { .. }
            | Message::Equal { .. }
            | Message::CopyA { .. }
            | Message::CopyB { .. }
            | Message::Listed { .. }
            | Message::Records { .. } => Kind::Repair,
            Message::SnapshotA { .. } | Message::SnapshotB(_) | Message::SnapshotC { .. } => {
                Kind::Join
            }
            Message::MissingA(_) | Message::MissingB(_) => Kind::Hole,
        }
    }
}

/// Messages, one for each receiver, and their bytes as frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub messages: u64,
    /// How long they are together.
    pub bytes: u64,
}

/// All that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    kinds: [Sum; Kind::ALL.len()],
    /// Bytes of the payloads of all events in all balls: what they would be longer by if they
    /// carried these.
    pub carried_bytes: u64,
}

impl Traffic {
    /// All kinds together.
    #[must_use]
    pub fn all(&self) -> Sum {
        let add = |all: Sum, one: &Sum| Sum {
            messages: all.messages + one.messages,
            bytes: all.bytes + one.bytes,
        };
        self.kinds.iter().fold(Sum::default(), add)
    }
}

impl Index<Kind> for Traffic {
    type Output = Sum;

    fn index(&self, kind: Kind) -> &Sum {
        &self.kinds[kind as usize]
    }
}

impl IndexMut<Kind> for Traffic {
    fn index_mut(&mut self, kind: Kind) -> &mut Sum {
        &mut self.kinds[kind as usize]
    }
}

impl Sub for Traffic {
    type Output = Traffic;

    fn sub(mut self, before: Traffic) -> Traffic {
        for (sum, before) in self.kinds.iter_mut().zip(before.kinds) {
            sum.messages -= before.messages;
            sum.bytes -= before.bytes;
        }
        self.carried_bytes -= before.carried_bytes;
        self
    }
}
