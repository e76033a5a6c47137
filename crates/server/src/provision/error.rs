//! Why a cluster was not written.

use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_node::catalog::CatalogError;
use quorate_store::DirectoryError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a cluster was not written.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// One group holds all hosts until there is a ring. Nothing was written.
    #[error("{count} hosts were asked for; a cluster has 1 to {GROUP_MEMBERS_MAX} for now")]
    HostCount {
        /// How many were asked for.
        count: usize,
    },
    /// An address cannot be a host's. Nothing was written.
    #[error("{address}: {message}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// A keyspace breaks a rule. Nothing was written.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A directory could not be created; those of hosts with higher numbers were.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The operating system gave no random bytes. Nothing was written.
    #[error("the operating system gives no random bytes: {0}")]
    Random(String),
    /// A file could not be read or written; some of the directories may have been created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
