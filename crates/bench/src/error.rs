//! What can end a measurement before its report.

use std::io;
use std::net::SocketAddr;

use quorate_client::ClientError;

use crate::scanner::Malformed;

/// Why a measurement gave no report. Servers keep whatever was written to them until then.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The settings contradict each other; nothing was sent.
    #[error("{0}")]
    Settings(String),
    /// An address did not take the first connection; nothing was sent.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// Every connection is gone and none may be opened again; sent writes may have been applied.
    #[error("all connections were lost, the last one to {address}: {cause}")]
    Disconnected {
        /// Where the last connection led.
        address: SocketAddr,
        /// How it ended.
        cause: String,
    },
    /// Nothing was answered for a long time; sent writes may have been applied.
    #[error("no reply for {seconds} s with {outstanding} commands outstanding")]
    Stalled {
        /// How long nothing came.
        seconds: u64,
        /// The commands that wait for a reply.
        outstanding: usize,
    },
    /// A server sent something that is no reply; sent writes may have been applied.
    #[error("{address} sent what is no reply: {source}")]
    Protocol {
        /// The server that sent it.
        address: SocketAddr,
        /// What was wrong with it.
        source: Malformed,
    },
    /// The keys could not be written before the run; some of them were.
    #[error("{failed} of {sent} commands of the load phase failed, first with {first}")]
    Load {
        /// Commands that were answered with an error or not at all.
        failed: u64,
        /// Commands sent.
        sent: u64,
        /// The first word of the first kind of error.
        first: String,
    },
    /// No operation of the run succeeded, so there is nothing to report.
    #[error("no operation succeeded: {errors} errors, mostly {first}")]
    NothingSucceeded {
        /// How many operations failed.
        errors: u64,
        /// The most frequent kind of error.
        first: String,
    },
    /// A server that the comparison starts did not come up; it was stopped again.
    #[error("{program} did not start: {reason}")]
    Child {
        /// What was started.
        program: String,
        /// What it said or did.
        reason: String,
    },
    /// A call of the native client failed; what was loaded or committed before stays.
    #[error("{0}")]
    Client(#[source] ClientError),
    /// The tables are not as a load leaves them; what was loaded or committed before stays.
    #[error("{0}")]
    Tables(String),
    /// It stays open whether a transaction was done, or may yet be, so nothing can be said of the
    /// tables.
    #[error("it stays open what became of a transaction, so nothing was checked: {why}")]
    Unsettled {
        /// Why the last try to settle it failed.
        why: String,
    },
    /// The user stopped the comparison; started servers were stopped.
    #[error("interrupted")]
    Interrupted,
    /// The machine refused something the client needs; sent writes may have been applied.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl BenchError {
    /// Names what was tried when the operating system refused.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> BenchError {
        move |source| BenchError::System { action, source }
    }
}
