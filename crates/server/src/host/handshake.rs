//! What two hosts say of themselves once both have proven that they belong to the cluster.
//!
//! ```text
//! magic "QRTE" | version u8 | cluster u128 | node u64 | start u32 | for node u64 | settings u64
//!     | run u64
//! ```
//! All integers are little-endian. `settings` is a hash of what both must agree on of every
//! keyspace. `run` is drawn anew by each process: the same node and start with another run is the
//! same identity in two places. A host that disagrees says so in its log and closes.

use quorate_kernel::ids::{ClusterId, Incarnation, NodeId, Start};
use quorate_kernel::wire::VERSION;
use quorate_store::Identity;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

pub(super) const MAGIC: [u8; 4] = *b"QRTE";
/// The version of what comes before the hello: the proof.
pub(super) const CONNECTION: u8 = 4;
/// How long a hello is.
pub(super) const HELLO_BYTES: usize = 57;

/// What a host says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub cluster: ClusterId,
    pub from: Incarnation,
    pub to: NodeId,
    pub settings: u64,
    pub run: u64,
}

impl Hello {
    /// What this start of the node says first, to whomever.
    pub fn first(identity: &Identity, me: Incarnation, run: u64) -> Hello {
        let (cluster, settings) = (identity.cluster, settings_hash(identity));
        Hello { cluster, from: me, to: me.node, settings, run }
    }
}

/// Why a peer is turned away. Nothing it sent was used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum HelloError {
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
            HelloError::Start { node, .. } | HelloError::Twin { node, .. } => Some(*node),
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
        let start = u32::from_le_bytes(*bytes[29..].first_chunk().expect("as above"));
        Ok(Hello {
            cluster: ClusterId(cluster),
            from: Incarnation { node: NodeId(u64_at(21)), start: Start(start) },
            to: NodeId(u64_at(33)),
            settings: u64_at(41),
            run: u64_at(49),
        })
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
pub(super) fn settings_hash(identity: &Identity) -> u64 {
    let mut text = String::new();
    for keyspace in &identity.keyspaces {
        text += &format!(
            "{}|{}|{}|{}|{}|{}|{}|{}|{:?}\n",
            keyspace.name,
            keyspace.lane.0,
            keyspace.engine,
            keyspace.durability,
            keyspace.value_bytes_max,
            keyspace.replicas,
            keyspace.order,
            keyspace.mode,
            keyspace.settings
        );
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
        }
    }

    #[test]
    fn a_hello_is_read_back_and_nonsense_is_refused() {
        assert_eq!(Hello::from_bytes(&hello().to_bytes()), Ok(hello()));
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
