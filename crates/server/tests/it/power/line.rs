//! One connection to a gRPC door, over which a client in a thread of its own asks one thing at a
//! time.

use quorate_api::details;
use quorate_api::v1::Error;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// A connection.
pub struct Line {
    runtime: Runtime,
    channel: Channel,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// Nothing was changed.
    Refused(Box<Error>),
    /// Nobody knows.
    Unknown,
    /// Nobody knows, and the connection cannot be used again.
    Broken,
}

impl Line {
    /// Connects; each call is then given up after `patience`.
    pub fn to(door: &str, patience: Duration) -> Option<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let endpoint = Endpoint::from_shared(format!("http://{door}")).expect("an address");
        let endpoint = endpoint.connect_timeout(patience).timeout(patience);
        let channel = runtime.block_on(endpoint.connect()).ok()?;
        Some(Line { runtime, channel })
    }

    /// What calls are made through.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Makes a call.
    pub fn ask<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failed> {
        match self.runtime.block_on(call) {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(match details::error(&status) {
                Some(error) if error.may_have_applied => Failed::Unknown,
                Some(error) => Failed::Refused(Box::new(error)),
                None => Failed::Broken,
            }),
        }
    }
}
