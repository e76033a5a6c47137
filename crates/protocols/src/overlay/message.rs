//! What the overlays of nodes say to each other. New variants are only appended.

use super::operators::shutdown::Stage;
use super::tokens::weights::Weights;
use crate::gossip::cyclon::{Peer, Shape};
use crate::gossip::digest::Seen;
use crate::gossip::hosts::BUCKETS;
use crate::gossip::record::News;
use crate::ring::stabilize::{NeighboursReply, NeighboursRequest};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{
    ADDRESS_BYTES_MAX, HOSTS_LISTED_MAX, HOSTS_MAX, LOOKUP_HOPS_MAX, PIECES_MAX, SUCCESSORS_MAX,
    TOKENS_PER_HOST_MAX,
};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// One message. None promises anything; what a sender stored about it is durable all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// To the oldest neighbour, once in a period: some neighbours, and the sender itself.
    Shuffle {
        /// The entries.
        entries: Vec<Peer>,
    },
    /// The answer: some neighbours of the sender, the asker not among them.
    ShuffleReply {
        /// The entries.
        entries: Vec<Peer>,
    },
    /// To random peers while it is hot, and to a suspect itself: what the sender knows of hosts.
    News {
        /// The news.
        news: Vec<News>,
    },
    /// To one random host now and then: a sum of all the sender knows. An equal receiver is silent.
    Digest {
        /// The sum.
        sum: u64,
    },
    /// The answer if the sums differ: the sums of the sender's buckets.
    Buckets {
        /// One sum for each bucket.
        sums: Vec<u64>,
    },
    /// The answer to that: what the sender has seen of the hosts in some buckets that differ.
    Versions {
        /// Which buckets, as bits.
        buckets: u64,
        /// Every host in them.
        seen: Vec<Seen>,
    },
    /// The answer to that: of these hosts the receiver has seen more than the sender.
    Want {
        /// The hosts.
        nodes: Vec<NodeId>,
    },
    /// What the receiver has missed. It may be old news to others.
    Missing {
        /// The news.
        news: Vec<News>,
    },
    /// An observer to a node that it watches, or that it takes for dead.
    Ping {
        /// The observer's time.
        sent: u64,
    },
    /// The answer. The sender lives, and what its overlay stored before is durable.
    Pong {
        /// Echoed.
        sent: u64,
    },
    /// To a successor: who are its neighbours? The sender precedes it.
    Stabilize {
        /// The questions.
        asks: Vec<NeighboursRequest>,
    },
    /// The answer.
    Neighbours {
        /// One answer for each token that the sender still has.
        answers: Vec<NeighboursReply>,
    },
    /// A host of another ring was found; passed on along the ring to its neighbourhood.
    Lookup {
        /// The host.
        news: Box<News>,
        /// How often it was passed on.
        hops: u8,
    },
    /// To one start of every host, from the one that an operator told to shut the cluster down;
    /// repeated until it is answered. The receiver begins nothing more.
    Close {
        /// Whether everybody has finished, so that the receiver shall end.
        is_over: bool,
    },
    /// The answer. The sender begins nothing more, and will end by itself if it hears nothing more.
    Closing {
        /// How far it is.
        stage: Stage,
    },
    /// To random peers while they are new: how much there is to do at hosts, and what they wish.
    Weights {
        /// The words of some hosts.
        words: Vec<Weights>,
    },
    /// To a host that lanes of the sender observe, as often as they want: is it there?
    Observe {
        /// The observer's time.
        sent: u64,
    },
    /// The answer. The sender runs and hears; of what it has stored nothing is said.
    Observed {
        /// Echoed.
        sent: u64,
    },
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let message: Message = input.head()?;
        message.validate()?;
        Ok(message)
    }
}

fn at_most(what: &'static str, length: usize, limit: usize) -> Result<(), WireError> {
    if length > limit {
        return Err(WireError::TooLong { what, length: length as u64, limit: limit as u64 });
    }
    Ok(())
}

impl Message {
    fn validate(&self) -> Result<(), WireError> {
        match self {
            Message::Shuffle { entries } | Message::ShuffleReply { entries } => {
                at_most("shuffle", entries.len(), Shape::USUAL.shuffle)?;
                let mut lengths = entries.iter().map(|peer| peer.address.len());
                lengths.try_for_each(|length| at_most("address", length, ADDRESS_BYTES_MAX))
            }
            Message::News { news } | Message::Missing { news } => {
                at_most("news", news.len(), HOSTS_MAX)?;
                news.iter().try_for_each(|news| news.record.validate())
            }
            Message::Buckets { sums } => at_most("sums", sums.len(), BUCKETS),
            Message::Versions { seen, .. } => at_most("hosts", seen.len(), HOSTS_LISTED_MAX),
            Message::Want { nodes } => at_most("hosts", nodes.len(), HOSTS_LISTED_MAX),
            Message::Stabilize { asks } => at_most("asks", asks.len(), TOKENS_PER_HOST_MAX),
            Message::Neighbours { answers } => {
                at_most("answers", answers.len(), TOKENS_PER_HOST_MAX)?;
                let mut lengths = answers.iter().map(|answer| answer.successors.len());
                lengths.try_for_each(|length| at_most("successors", length, SUCCESSORS_MAX))
            }
            Message::Lookup { news, hops } => {
                at_most("hops", usize::from(*hops), usize::from(LOOKUP_HOPS_MAX))?;
                news.record.validate()
            }
            Message::Weights { words } => {
                at_most("words", words.len(), HOSTS_MAX)?;
                let mut lengths = words.iter().map(|word| word.pieces.len());
                lengths.try_for_each(|length| at_most("pieces", length, PIECES_MAX))
            }
            Message::Digest { .. }
            | Message::Ping { .. }
            | Message::Pong { .. }
            | Message::Observe { .. }
            | Message::Observed { .. }
            | Message::Close { .. }
            | Message::Closing { .. } => Ok(()),
        }
    }
}
