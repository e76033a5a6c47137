//! One host: the core thread, its sockets and the disk thread.
//!
//! The core thread owns all protocol state and every socket; it turns in [`core`], drains what has
//! arrived, runs the node's turn and writes once per peer and client. The disk thread owns the
//! store's write path. [`run`] is all that the rest of the binary knows of either.
//!
//! | module | what it holds |
//! |---|---|
//! | `core`, `out` | the loop, and what a turn lets out |
//! | `doors` | the doors of clients on the core thread, and their connections |
//! | `pending` | what was handed to the node: who waits for which answer |
//! | `cluster` | the other hosts: who they are, and the connections to them |
//! | `calls` | operations that the other doors' threads ask for, and what these follow |
//! | `operators` | what operators ask, and what lanes show |
//! | `disk` | the disk thread: group commit |
//! | `lanes` | the lanes of the node |
//! | `keyspaces` | the keyspaces as the catalog has them now |
//! | `refill` | when all that a loss of power took is back |
//! | `io`, `token` | one read, one write; what an event is about |
//! | [`engines`] | the engines of this process |
//! | [`metrics`] | what the threads of a host tell the outside |
//! | [`proof`] | how programs prove that they belong to a cluster |
//! | [`ring`] | where hosts stand on the ring, and how that is told |
//! | [`shutdown`] | the one request to stop |

mod calls;
mod cluster;
mod core;
mod disk;
mod doors;
pub mod engines;
mod io;
mod keyspaces;
mod lanes;
#[cfg(test)]
mod lines;
pub mod machine;
pub mod metrics;
mod operators;
mod out;
mod pending;
pub mod proof;
mod refill;
pub mod ring;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod shutdown;
mod token;

pub use crate::core::wall;
pub use calls::queues::{Call, CallEnd, Calls, CallsInbox, Happened, Named, calls};
pub use cluster::faults::Fault;
pub use doors::admission::DoorOptions;
pub use keyspaces::Served;
pub use operators::requests::{OperatorReply, OperatorRequest, Silence};

use crate::metrics::Shared;
use crate::proof::Encrypt;
use crate::proof::Secrets;
use crate::shutdown::Shutdown;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::RingHost;
use quorate_kernel::sighting::Disowned;
use quorate_kernel::time::Span;
use quorate_store::{Directory, DirectoryError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What a host needs to run.
pub struct Options {
    /// The open data directory: who the host is, and its keyspaces.
    pub directory: Directory,
    /// The doors of clients that the core thread serves.
    pub doors: Vec<DoorOptions>,
    /// The doors that are served beside the core thread, and where they listen.
    pub beside: Vec<(&'static str, SocketAddr)>,
    /// Where the door for other hosts listens.
    pub cluster: SocketAddr,
    /// The hosts that the directory names, this one included, each where the configuration or else
    /// the directory says it is.
    pub hosts: Vec<RingHost>,
    /// The secrets that other hosts may show to know.
    pub secrets: Arc<Secrets>,
    /// Which connections to other hosts are encrypted.
    pub encrypt: Encrypt,
    /// What the doors on other threads ask, operators' requests included.
    pub calls: CallsInbox,
    /// How often the host looks whether the load of the ring should be evened out, if it takes part
    /// in that.
    pub balance: Option<Duration>,
    /// How hosts keep a roll of who takes part, which seats of groups follow; without one they
    /// follow what each host's failure detector says.
    pub roll: Option<quorate_kernel::roll::Kind>,
    /// How many bytes a second it fetches at most when data moves; 0 is no limit.
    pub transfer_rate: u64,
    /// When an operation must have been answered whose client does not say.
    pub request_timeout: Duration,
    /// How many bytes of records are at hand at most, beside what is not on disk yet and what
    /// `memory` keyspaces have; 0 is a tenth of the machine's memory.
    pub cache_bytes_max: usize,
    /// How much memory and disk the store may use.
    pub store: quorate_store::Options,
    /// What the host tells the outside.
    pub shared: Arc<Shared>,
    /// When to stop.
    pub shutdown: Arc<Shutdown>,
}

/// Why a host ended. What was acknowledged before is as durable as its keyspace promises.
#[derive(Debug, Error)]
pub enum HostError {
    /// A door's address cannot be listened on. The host did not start.
    #[error("the {door} door cannot listen on {address}: {source}")]
    Bind {
        /// Which door.
        door: &'static str,
        /// Where it was told to listen.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system refused something the loop needs. Nothing that was not durable was
    /// acknowledged.
    #[error("the operating system refused {what}: {source}")]
    System {
        /// What was refused.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The identity names a keyspace that this build cannot serve. The host did not start.
    #[error("the keyspaces of this directory cannot be served: {0}")]
    Catalog(#[from] quorate_kernel::keyspace::CatalogRefusal),
    /// The data directory was refused.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The directory is not what the other hosts have seen of its node. Nothing of it was sent.
    #[error(
        "node {node} cannot be served from {path}: {why}. The directory is a copy, was put back, \
         or has lost what was acknowledged. Keep it as it is. Only `quorate rejoin --force \
         --data {path}` may give this host a new node id, to join again by state transfer, and \
         never a majority of a group at once", path = path.display()
    )]
    Disowned {
        /// By its directory; its peers know more of it than that has.
        node: NodeId,
        /// The directory.
        path: PathBuf,
        /// What the others have seen.
        why: Disowned,
    },
    /// The node was removed from the cluster for good. What it held was handed over before, or was
    /// given up by whoever removed it.
    #[error(
        "node {node} was removed from the cluster for good: this host can join as a new one after \
         `quorate rejoin --force --data {}`", path.display()
    )]
    Removed {
        /// By its directory; no host takes it in again.
        node: NodeId,
        /// The directory.
        path: PathBuf,
    },
    /// The disk failed or holds what was not written.
    #[error(transparent)]
    Fatal(#[from] Fatal),
}

/// A length of time as lanes have it.
fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Runs the host until it is told to stop; returns after everything is synced.
///
/// # Errors
/// The host could not start, or had to stop.
pub fn run(options: Options) -> Result<(), HostError> {
    core::Core::start(options)?.run()
}

/// Raises a connection's flag and lists the connection, unless that was done already.
fn mark(flag: &mut bool, list: &mut Vec<usize>, key: usize) {
    if !*flag {
        *flag = true;
        list.push(key);
    }
}
