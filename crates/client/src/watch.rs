//! What happens to keyspaces and hosts, as one host tells it.

use crate::error::ClientError;
use quorate_api::v1::WatchResponse;
use tonic::Streaming;

/// What happens, in the order in which one host learns of it. Nothing is told twice and nothing
/// made up for: after an error, watch anew, and compare with what there is then.
#[derive(Debug)]
pub struct Events {
    stream: Streaming<WatchResponse>,
}

impl Events {
    pub(crate) fn new(stream: Streaming<WatchResponse>) -> Events {
        Events { stream }
    }

    /// The next event. It waits as long as nothing happens.
    ///
    /// # Errors
    /// The watch has ended: the host stops (`Kind::Stopping`) or is gone, or this client took
    /// events more slowly than they came (`Kind::Overloaded`).
    pub async fn next(&mut self) -> Result<WatchResponse, ClientError> {
        let ended = || ClientError::Unreachable { why: String::from("the stream has ended") };
        self.stream
            .message()
            .await
            .map_err(|status| ClientError::of_stream(&status))?
            .ok_or_else(ended)
    }
}
