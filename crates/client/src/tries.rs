//! The tries of one call: at which host, for how long, and what the hosts are told to have done.

use crate::client::Client;
use crate::error::ClientError;
use crate::hosts::{Host, Service};
use crate::verdict::Verdict;
use std::time::{Duration, Instant};
use tonic::{Request, Response, Status};

/// The pause before the second try; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The tries of one call.
pub(crate) struct Tries<'a> {
    client: &'a Client,
    /// The host that is believed to hold the key, until it was tried.
    routed: Option<usize>,
    /// Whose turn it is, if no host is believed to.
    turn: usize,
    deadline: Instant,
    pause: Duration,
}

impl<'a> Tries<'a> {
    /// Begins at the host that is believed to hold the key, if one is.
    pub fn new(client: &'a Client, routed: Option<usize>) -> Tries<'a> {
        let deadline = Instant::now() + client.settings.timeout;
        Tries { client, routed, turn: client.hosts.preferred(), deadline, pause: PAUSE }
    }

    /// Whose turn it is.
    pub fn host(&self) -> &'a Host {
        self.client.hosts.at(self.routed.unwrap_or(self.turn))
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The time for one try of several: a host that hangs must leave some to the next one.
    pub fn share(&self) -> Duration {
        if self.client.hosts.count() > 1 { self.left() / 2 } else { self.left() }
    }

    /// Makes a call at the host whose turn it is.
    pub async fn call<S: Service, R, T>(
        &self,
        within: Duration,
        request: R,
        call: &impl AsyncFn(S, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, Verdict> {
        let mut asked = Request::new(request);
        asked.set_timeout(within);
        let answer = call(S::of(self.host()), asked);
        let verdict = match tokio::time::timeout(within, answer).await {
            Ok(Ok(response)) => {
                self.answered();
                return Ok(response.into_inner());
            }
            Ok(Err(status)) => Verdict::of(&status),
            Err(_) => Verdict::Lost(String::from("no answer came")),
        };
        if matches!(verdict, Verdict::Lost(_) | Verdict::Unsent(_)) {
            self.host().forget();
        }
        if self.routed.is_some() && !matches!(verdict, Verdict::Refused(_)) {
            self.client.routes.doubt();
        }
        Err(verdict)
    }

    /// The host whose turn it is cannot be reached, and nothing was sent to it.
    pub fn unreachable(&self, why: &Status) -> ClientError {
        self.host().forget();
        if self.routed.is_some() {
            self.client.routes.doubt();
        }
        ClientError::Unreachable { why: why.message().to_owned() }
    }

    fn answered(&self) {
        self.host().is_there();
        if self.routed.is_none() {
            self.client.hosts.prefer(self.turn);
        }
    }

    /// Goes on at the next host.
    pub fn go_on(&mut self) {
        let count = self.client.hosts.count();
        // Whoever was believed to hold the key is not tried twice running.
        if self.routed.take().is_none_or(|failed| failed == self.turn % count) {
            self.turn += 1;
        }
    }

    /// Waits before the next try; false if no time is left for one.
    pub async fn pause(&mut self) -> bool {
        if self.left() <= self.pause {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        true
    }
}
