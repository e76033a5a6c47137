//! Why a cluster was not written.

use quorate_host::proof::secret::SecretError;
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::limits::{FOUNDING_HOSTS_MAX, HOST_TOKENS_MAX};
use quorate_store::DirectoryError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a cluster was not written.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// A cluster begins small and grows. Nothing was written.
    #[error(
        "{count} hosts were asked for; a cluster is born with 1 to {FOUNDING_HOSTS_MAX}, and more \
         can join it later"
    )]
    HostCount {
        /// How many were asked for.
        count: usize,
    },
    /// A host needs a place on the ring, and not too many. Nothing was written.
    #[error("{count} tokens for each host were asked for; a host has 1 to {HOST_TOKENS_MAX}")]
    TokenCount {
        /// How many were asked for.
        count: usize,
    },
    /// Zones and hosts go together. Nothing was written.
    #[error("{zones} zones were given for {hosts} hosts; give one for each host, or none")]
    ZoneCount {
        /// How many zones were given.
        zones: usize,
        /// How many hosts were asked for.
        hosts: usize,
    },
    /// An address cannot be a host's. Nothing was written.
    #[error("{address}: {message}")]
    Address {
        /// What was given for it.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// A seed's invitation makes no sense. Nothing was written.
    #[error("the seed's invitation makes no sense: {what}")]
    Invitation {
        /// Which part of it is wrong, and how.
        what: String,
    },
    /// A keyspace breaks a rule. Nothing was written.
    #[error(transparent)]
    Catalog(#[from] CatalogRefusal),
    /// A directory could not be created; those of hosts with higher numbers were.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The file of the cluster's secret could not be written. Nothing else was.
    #[error(transparent)]
    Secret(#[from] SecretError),
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
