//! What two hosts say of themselves once both have proven that they belong to the cluster.
//!
//! ```text
//! magic "QRTE" | version u8 | cluster u128 | node u64 | start u32 | for node u64 | settings u64
//!     | run u64 | flags u8 | highest start u32 | seen start u32, run u64, synced u64 | number u32
//! ```
//! All integers are little-endian. `settings` is a hash of what both must agree on of every
//! keyspace. `run` is drawn anew by each process: the same node and start with another run is the
//! same identity in two places. What follows is what the sender knows of the receiver's node, by
//! which the receiver judges its own directory (`meeting`). `number` is what people call the
//! sender, 0 if nothing. A host that disagrees says so in its
//! log, answers with its own hello if it has not sent one, and closes.

use quorate_kernel::ids::{ClusterId, Incarnation, Lsn, NodeId, Start};
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::wire::VERSION;
use quorate_store::Identity;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

pub(super) const MAGIC: [u8; 4] = *b"QRTE";
/// The version of what comes before the hello: the proof.
pub(super) const CONNECTION: u8 = 4;
/// How long a hello is.
pub(super) const HELLO_BYTES: usize = 86;

const HAS_LEFT: u8 = 1;
const IS_THERE: u8 = 2;

/// What the sender of a hello knows of the receiver's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// It was removed from the cluster.
    pub has_left: bool,
    /// Another process of it is connected to the sender.
    pub is_there: bool,
    /// The highest start that the sender or the ring has heard of; 0 if none.
    pub highest: Start,
    /// What the sender itself has seen of it.
    pub seen: Option<Sighting>,
}

/// What a host says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub cluster: ClusterId,
    pub from: Incarnation,
    pub to: NodeId,
    pub settings: u64,
    pub run: u64,
    pub word: Word,
    /// The sender's number: a name for people; 0 if it has none.
    pub number: u32,
}

impl Hello {
    /// What this start of the node says first, to whomever.
    pub fn first(identity: &Identity, me: Incarnation, run: u64) -> Hello {
        let (cluster, settings) = (identity.cluster, settings_hash(identity));
        let (word, number) = (Word::default(), identity.host);
        Hello { cluster, from: me, to: me.node, settings, run, word, number }
    }
}

/// Why a peer is turned away. Nothing it sent was used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum HelloError {
    #[error("it does not speak this protocol")]
    Magic,
    #[error("it speaks version {found} of the protocol, this host speaks {VERSION}")]
    Version { found: u8 },
    #[error("it belongs to cluster {found}, this host to {expected}")]
    Cluster { found: ClusterId, expected: ClusterId },
    #[error("it looks for node {wanted}, this host has node {here}: an address is wrong")]
    Target { wanted: NodeId, here: NodeId },
    #[error("too many hosts are connected that the ring does not know; node {node} must wait")]
    Crowd { node: NodeId },
    #[error(
        "node {node} was removed from the cluster; put its directory aside with \
         `quorate rejoin --force`, and join as a new host"
    )]
    Left { node: NodeId },
    #[error(
        "node {node} runs in two places with start {start}: its directory was copied; stop one of \
         the two hosts, and join it as a new one"
    )]
    Twin { node: NodeId, start: u32 },
    #[error(
        "node {node} shows start {start} while another process of it is connected: its directory \
         was copied, or its old connection is not lost yet"
    )]
    There { node: NodeId, start: u32 },
    #[error("node {node} is connected to another process of this host's node")]
    Rival { node: NodeId },
    #[error("node {node} has seen of this host's node what its directory does not hold")]
    Disowned { node: NodeId },
    #[error("it shows this host's own node {node}: its directory is a copy; stop one of the two")]
    Itself { node: NodeId },
    #[error("node {node} shows start {found} after {seen}: its directory was copied or put back")]
    Start { node: NodeId, found: u32, seen: u32 },
    #[error("its keyspaces are set differently from this host's")]
    Settings,
    #[error("node {found} answers there, not node {wanted}: an address is wrong")]
    Other { wanted: NodeId, found: NodeId },
    #[error("it opens connections in version {found}, this host in {CONNECTION}")]
    Connection { found: u8 },
    #[error("it does not know this cluster's secret")]
    Secret,
    #[error("it refuses the secret of this host, or does not know it")]
    Refused,
    #[error("it lost its proof: somebody stands between the two hosts")]
    Broken,
}

impl HelloError {
    /// The node that was claimed, where that is what is wrong.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            HelloError::Start { node, .. }
            | HelloError::Twin { node, .. }
            | HelloError::There { node, .. }
            | HelloError::Rival { node }
            | HelloError::Disowned { node }
            | HelloError::Left { node } => Some(*node),
            _ => None,
        }
    }

    /// Whether somebody must act: data may be in two places.
    pub fn is_grave(&self) -> bool {
        use HelloError::{Itself, Start, Twin};
        matches!(self, Start { .. } | Twin { .. } | Itself { .. })
    }
}

impl Hello {
    pub fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5..21].copy_from_slice(&self.cluster.0.to_le_bytes());
        bytes[21..29].copy_from_slice(&self.from.node.0.to_le_bytes());
        bytes[29..33].copy_from_slice(&self.from.start.0.to_le_bytes());
        bytes[33..41].copy_from_slice(&self.to.0.to_le_bytes());
        bytes[41..49].copy_from_slice(&self.settings.to_le_bytes());
        bytes[49..57].copy_from_slice(&self.run.to_le_bytes());
        let Word { has_left, is_there, highest, seen } = self.word;
        bytes[57] = (HAS_LEFT * u8::from(has_left)) | (IS_THERE * u8::from(is_there));
        bytes[58..62].copy_from_slice(&highest.0.to_le_bytes());
        if let Some(seen) = seen {
            bytes[62..66].copy_from_slice(&seen.start.0.to_le_bytes());
            bytes[66..74].copy_from_slice(&seen.run.to_le_bytes());
            bytes[74..82].copy_from_slice(&seen.synced.0.to_le_bytes());
        }
        bytes[82..86].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, HelloError> {
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(HelloError::Magic);
        }
        if bytes[4] != VERSION {
            return Err(HelloError::Version { found: bytes[4] });
        }
        let u64_at = |at: usize| {
            u64::from_le_bytes(*bytes[at..].first_chunk().expect("the offsets lie in the hello"))
        };
        let cluster = u128::from(u64_at(5)) | u128::from(u64_at(13)) << 64;
        let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("as above"));
        let start_at = |at: usize| Start(u32_at(at));
        let to = NodeId(u64_at(33));
        let (start, run, synced) = (start_at(62), u64_at(66), Lsn(u64_at(74)));
        let word = Word {
            has_left: bytes[57] & HAS_LEFT != 0,
            is_there: bytes[57] & IS_THERE != 0,
            highest: start_at(58),
            seen: (start > Start(0)).then_some(Sighting { node: to, start, run, synced }),
        };
        let from = Incarnation { node: NodeId(u64_at(21)), start: start_at(29) };
        let (settings, run) = (u64_at(41), u64_at(49));
        let (cluster, number) = (ClusterId(cluster), u32_at(82));
        Ok(Hello { cluster, from, to, settings, run, word, number })
    }

    /// Whether the other's hello fits this host's.
    pub fn check(&self, other: &Hello) -> Result<(), HelloError> {
        if other.cluster != self.cluster {
            return Err(HelloError::Cluster { found: other.cluster, expected: self.cluster });
        }
        if other.from.node == self.from.node {
            return Err(HelloError::Itself { node: self.from.node });
        }
        if other.to != self.from.node {
            return Err(HelloError::Target { wanted: other.to, here: self.from.node });
        }
        if other.settings != self.settings {
            return Err(HelloError::Settings);
        }
        Ok(())
    }
}

/// The hash of what two hosts must agree on.
pub(crate) fn settings_hash(identity: &Identity) -> u64 {
    let mut text = String::new();
    for keyspace in &identity.keyspaces {
        let NewKeyspace { name, engine, settings } = keyspace;
        text += &format!("{name}|{engine}|{settings:?}\n");
    }
    xxh3_64(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            cluster: ClusterId(1 << 100 | 7),
            from: Incarnation { node: NodeId(3), start: Start(9) },
            to: NodeId(4),
            settings: 5,
            run: 11,
            number: 2,
            word: Word::default(),
        }
    }

    #[test]
    fn a_hello_is_read_back_and_nonsense_is_refused() {
        assert_eq!(Hello::from_bytes(&hello().to_bytes()), Ok(hello()));
        let seen = Sighting { node: NodeId(4), start: Start(8), run: 1 << 63, synced: Lsn(154) };
        for (has_left, is_there) in [(false, true), (true, false)] {
            let word = Word { has_left, is_there, highest: Start(9), seen: Some(seen) };
            let hello = Hello { word, ..hello() };
            assert_eq!(Hello::from_bytes(&hello.to_bytes()), Ok(hello));
        }
        let mut bytes = hello().to_bytes();
        bytes[0] = b'*';
        assert_eq!(Hello::from_bytes(&bytes), Err(HelloError::Magic));
        let mut bytes = hello().to_bytes();
        bytes[4] = 99;
        assert_eq!(Hello::from_bytes(&bytes), Err(HelloError::Version { found: 99 }));
    }

    #[test]
    fn hosts_that_disagree_turn_each_other_away() {
        let here = Hello { from: Incarnation { node: NodeId(4), start: Start(1) }, ..hello() };
        assert_eq!(here.check(&hello()), Ok(()));
        let foreign = Hello { cluster: ClusterId(2), ..hello() };
        assert!(matches!(here.check(&foreign), Err(HelloError::Cluster { .. })));
        let lost = Hello { to: NodeId(8), ..hello() };
        assert!(matches!(here.check(&lost), Err(HelloError::Target { .. })));
        let copy = Hello { from: here.from, ..hello() };
        assert!(matches!(here.check(&copy), Err(HelloError::Itself { .. })));
        let other = Hello { settings: 6, ..hello() };
        assert_eq!(here.check(&other), Err(HelloError::Settings));
    }
}
