//! How a call is made until it is done, refused, or nobody can say.
//!
//! A read is asked of one host after another. A write is sent with a request id, under which a host
//! does it once. Where it may be sent again when no answer came is its [`Manner`]. Where another
//! host may be asked, a try takes at most half of the time that is left.

use crate::client::Client;
use crate::error::ClientError;
use crate::hosts::Service;
use crate::tries::Tries;
use crate::verdict::Verdict;
use bytes::Bytes;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::{Repeat, WriteOptions};
use std::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The service `Kv` of a host.
pub(crate) type Kv = KvClient<Channel>;

/// Where a write may be sent again if it may have been done already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Only to the host that it was sent to first: at another one an old value could come back over
    /// a newer one.
    AtOne,
    /// To any host: its id stays with the version, and versions of one id are one value; or it
    /// removes what is gone then.
    Anywhere,
}

/// Makes a call that changes nothing at one host after another, until one answers.
pub(crate) async fn read<R: Clone, T>(
    client: &Client,
    routed: Option<usize>,
    request: R,
    call: impl AsyncFn(Kv, Request<R>) -> Result<Response<T>, Status>,
) -> Result<T, ClientError> {
    read_of(client, routed, request, call).await
}

/// The same, of any service.
pub(crate) async fn read_of<S: Service, R: Clone, T>(
    client: &Client,
    routed: Option<usize>,
    request: R,
    call: impl AsyncFn(S, Request<R>) -> Result<Response<T>, Status>,
) -> Result<T, ClientError> {
    let mut tries = Tries::new(client, routed);
    // What was asked is what became of something, and nobody knows yet.
    let mut open = None;
    loop {
        let failure = match tries.call(tries.share(), request.clone(), &call).await {
            Ok(answer) => return Ok(answer),
            Err(Verdict::Refused(error)) => return Err(ClientError::Refused(error)),
            Err(Verdict::Again(error)) => ClientError::Refused(error),
            Err(Verdict::Unknown(error)) if error.outcome_token.is_empty() => {
                return Err(ClientError::unknown(*error));
            }
            Err(Verdict::Unknown(error)) => {
                open = Some(error.clone());
                ClientError::unknown(*error)
            }
            Err(Verdict::Lost(why) | Verdict::Unsent(why)) => ClientError::Unreachable { why },
        };
        let failure = open.clone().map_or(failure, |error| ClientError::unknown(*error));
        tries.go_on();
        if !tries.pause().await {
            return Err(failure);
        }
    }
}

/// Has a write done once.
pub(crate) async fn write<S: Service, R, T>(
    client: &Client,
    (routed, manner): (Option<usize>, Manner),
    make: impl Fn(WriteOptions) -> R,
    call: impl AsyncFn(S, Request<R>) -> Result<Response<T>, Status>,
) -> Result<T, ClientError> {
    let mut tries = Tries::new(client, routed);
    loop {
        let failure = match attempt(&mut tries, manner, &make, &call).await {
            Ok(done) => return Ok(done),
            Err(Attempt::Over(error)) => return Err(error),
            Err(Attempt::Elsewhere(error)) => error,
        };
        tries.go_on();
        if !tries.pause().await {
            return Err(failure);
        }
    }
}

/// How a write under one request id failed.
enum Attempt {
    /// Nothing was changed, and another host may do better.
    Elsewhere(ClientError),
    /// There is no point in another try.
    Over(ClientError),
}

/// Has a write done under one request id.
async fn attempt<S: Service, R, T>(
    tries: &mut Tries<'_>,
    manner: Manner,
    make: &impl Fn(WriteOptions) -> R,
    call: &impl AsyncFn(S, Request<R>) -> Result<Response<T>, Status>,
) -> Result<T, Attempt> {
    let first = tries.host().coordinator(tries.share()).await;
    let first = first.map_err(|status| Attempt::Elsewhere(tries.unreachable(&status)))?;
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| Attempt::Over(ClientError::Randomness))?;
    let (request_id, begun) = (Bytes::copy_from_slice(&id), Instant::now());
    // Whether it may have been done by a host that did not say so.
    let mut is_open = false;
    loop {
        let age_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let repeat = is_open.then_some(Repeat { coordinator: Some(first), age_ms });
        let options = WriteOptions { request_id: request_id.clone(), repeat, timeout_ms: 0 };
        let within = match manner {
            Manner::AtOne => tries.left(),
            Manner::Anywhere => tries.share(),
        };
        let verdict = match tries.call(within, make(options), call).await {
            Ok(done) => return Ok(done),
            Err(verdict) => verdict,
        };
        let why = match verdict {
            Verdict::Refused(error) if !is_open => {
                return Err(Attempt::Over(ClientError::Refused(error)));
            }
            Verdict::Again(error)
                if !is_open || (manner == Manner::AtOne && Verdict::is_of_the_write(&error)) =>
            {
                return Err(Attempt::Elsewhere(ClientError::Refused(error)));
            }
            Verdict::Unsent(why) if !is_open => {
                return Err(Attempt::Elsewhere(ClientError::Unreachable { why }));
            }
            Verdict::Unknown(error) if manner == Manner::AtOne => {
                return Err(Attempt::Over(ClientError::unknown(*error)));
            }
            // What was turned away at the door, or never sent, says nothing of the first time.
            Verdict::Again(error) | Verdict::Refused(error) | Verdict::Unknown(error) => error.what,
            Verdict::Lost(why) | Verdict::Unsent(why) => why,
        };
        is_open = true;
        if manner == Manner::Anywhere {
            tries.go_on();
        }
        if !tries.pause().await {
            return Err(Attempt::Over(ClientError::OutcomeUnknown { why, token: None }));
        }
    }
}
