//! The client and its calls.

use crate::error::ClientError;
use crate::hosts::Hosts;
use crate::listing::{Listing, Scan};
use crate::verdict::Verdict;
use bytes::Bytes;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::reading::State;
use quorate_api::v1::{self, Reading, Repeat, WriteOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The pause before the second try; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How a client behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a call may take, all tries together.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { timeout: Duration::from_secs(10) }
    }
}

/// A client of a cluster. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) settings: Settings,
}

impl Client {
    /// A client of the cluster that these hosts belong to, given as `NAME:PORT` of their gRPC
    /// doors. Nothing is connected yet. Must be called within a runtime.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn new(addresses: &[impl AsRef<str>]) -> Result<Client, ClientError> {
        Client::with(addresses, Settings::default())
    }

    /// The same with settings.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn with(addresses: &[impl AsRef<str>], settings: Settings) -> Result<Client, ClientError> {
        Ok(Client { hosts: Arc::new(Hosts::new(addresses)?), settings })
    }

    /// A keyspace. Whether it exists is seen by the first call.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Keyspace {
        Keyspace { client: self.clone(), name: name.to_owned() }
    }

    /// Makes a call that changes nothing at one host after another, until one answers.
    pub(crate) async fn read<R: Clone, T>(
        &self,
        request: R,
        call: impl AsyncFn(KvClient<Channel>, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let mut tries = Tries::new(self);
        loop {
            let mut asked = Request::new(request.clone());
            asked.set_timeout(tries.left());
            let answer = call(self.hosts.at(tries.turn).kv(), asked);
            let failed = match tokio::time::timeout(tries.left(), answer).await {
                Ok(Ok(response)) => {
                    self.hosts.prefer(tries.turn);
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) => Verdict::of(&status),
                Err(_) => Verdict::Lost(String::from("no answer came")),
            };
            let failure = match failed {
                Verdict::Again(error) => ClientError::Refused(error),
                Verdict::Refused(error) => return Err(ClientError::Refused(error)),
                Verdict::Lost(why) | Verdict::Unknown(why) => {
                    self.hosts.at(tries.turn).forget();
                    ClientError::Unreachable { why }
                }
            };
            tries.turn += 1;
            if !tries.pause().await {
                return Err(failure);
            }
        }
    }

    /// Has a write done once.
    pub(crate) async fn write<R, T>(
        &self,
        make: impl Fn(WriteOptions) -> R,
        call: impl AsyncFn(KvClient<Channel>, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let mut tries = Tries::new(self);
        loop {
            let failure = match self.write_at(&mut tries, &make, &call).await {
                Ok(done) => {
                    self.hosts.prefer(tries.turn);
                    return Ok(done);
                }
                Err(Attempt::Over(error)) => return Err(error),
                Err(Attempt::Elsewhere(error)) => error,
            };
            tries.turn += 1;
            if !tries.pause().await {
                return Err(failure);
            }
        }
    }

    /// Has a write done at one host: if no answer comes, it is sent there again under its id.
    async fn write_at<R, T>(
        &self,
        tries: &mut Tries,
        make: &impl Fn(WriteOptions) -> R,
        call: &impl AsyncFn(KvClient<Channel>, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, Attempt> {
        let host = self.hosts.at(tries.turn);
        let first = host.coordinator(tries.left()).await.map_err(|status| {
            Attempt::Elsewhere(ClientError::Unreachable { why: status.message().to_owned() })
        })?;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| Attempt::Over(ClientError::Randomness))?;
        let (request_id, begun) = (Bytes::copy_from_slice(&id), Instant::now());
        let mut is_repeated = false;
        loop {
            let age_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let repeat = is_repeated.then_some(Repeat { coordinator: Some(first), age_ms });
            let options = WriteOptions { request_id: request_id.clone(), repeat, timeout_ms: 0 };
            let mut asked = Request::new(make(options));
            asked.set_timeout(tries.left());
            let answer = call(host.kv(), asked);
            let failed = match tokio::time::timeout(tries.left(), answer).await {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => Verdict::of(&status),
                Err(_) => Verdict::Lost(String::from("no answer came")),
            };
            let why = match failed {
                Verdict::Refused(error) if !is_repeated => {
                    return Err(Attempt::Over(ClientError::Refused(error)));
                }
                Verdict::Again(error) if !is_repeated || Verdict::is_of_the_write(&error) => {
                    return Err(Attempt::Elsewhere(ClientError::Refused(error)));
                }
                Verdict::Unknown(why) => {
                    return Err(Attempt::Over(ClientError::OutcomeUnknown { why }));
                }
                // What was turned away at the door says nothing of the first time.
                Verdict::Again(error) | Verdict::Refused(error) => error.what,
                Verdict::Lost(why) => {
                    host.forget();
                    is_repeated = true;
                    why
                }
            };
            if !tries.pause().await {
                return Err(Attempt::Over(ClientError::OutcomeUnknown { why }));
            }
        }
    }
}

/// How a write at one host failed.
enum Attempt {
    /// Nothing was changed, and another host may do better.
    Elsewhere(ClientError),
    /// There is no point in another try.
    Over(ClientError),
}

/// The tries of one call.
struct Tries {
    /// Whose turn it is.
    turn: usize,
    deadline: Instant,
    pause: Duration,
}

impl Tries {
    fn new(client: &Client) -> Tries {
        let deadline = Instant::now() + client.settings.timeout;
        Tries { turn: client.hosts.preferred(), deadline, pause: PAUSE }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits before the next try; false if no time is left for one.
    async fn pause(&mut self) -> bool {
        if self.left() <= self.pause {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        true
    }
}

/// One keyspace of a cluster.
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub(crate) client: Client,
    pub(crate) name: String,
}

impl Keyspace {
    /// Reads a key; `None` if it has no value.
    ///
    /// # Errors
    /// It could not be read; [`ClientError::Siblings`] if it has several concurrent values.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>, ClientError> {
        let (keyspace, key) = (self.name.clone(), key.into());
        let asked = v1::GetRequest { keyspace, key, ..v1::GetRequest::default() };
        let answer = self.client.read(asked, async |mut kv, asked| kv.get(asked).await).await?;
        value(answer.reading)
    }

    /// Reads several keys, each by itself.
    ///
    /// # Errors
    /// One of them could not be read.
    pub async fn batch_get(
        &self,
        keys: impl IntoIterator<Item = Bytes>,
    ) -> Result<Vec<Option<Bytes>>, ClientError> {
        let (keyspace, keys) = (self.name.clone(), keys.into_iter().collect());
        let asked = v1::BatchGetRequest { keyspace, keys, ..v1::BatchGetRequest::default() };
        let call = async |mut kv: KvClient<Channel>, asked| kv.batch_get(asked).await;
        let answer = self.client.read(asked, call).await?;
        answer.readings.into_iter().map(|reading| value(Some(reading))).collect()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn put(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<(), ClientError> {
        let (key, value) = (key.into(), value.into());
        let make = |options| v1::PutRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            value: value.clone(),
            context: Bytes::new(),
            options: Some(options),
        };
        self.client.write(make, async |mut kv, asked| kv.put(asked).await).await.map(drop)
    }

    /// Removes a key; whether it had a value.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn delete(&self, key: impl Into<Bytes>) -> Result<bool, ClientError> {
        let key = key.into();
        let make = |options| v1::DeleteRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            context: Bytes::new(),
            options: Some(options),
        };
        let done = self.client.write(make, async |mut kv, asked| kv.delete(asked).await).await?;
        Ok(done.existed)
    }

    /// Lists keys, page by page.
    #[must_use]
    pub fn scan(&self, scan: Scan) -> Listing {
        Listing::new(self.client.clone(), &self.name, scan)
    }
}

/// The one value of a reading.
pub(crate) fn value(reading: Option<Reading>) -> Result<Option<Bytes>, ClientError> {
    match reading.and_then(|reading| reading.state) {
        Some(State::Value(value)) => Ok(Some(value)),
        Some(State::Absent(_)) => Ok(None),
        Some(State::Siblings(mut siblings)) => match siblings.values.len() {
            0 | 1 => Ok(siblings.values.pop()),
            _ => Err(ClientError::Siblings(siblings)),
        },
        None => Err(ClientError::Nonsense("a reading without a state")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Siblings;

    #[tokio::test]
    async fn addresses_are_checked_before_anything_is_sent() {
        for bad in ["", "nowhere", "a b:1", "http://x:1", "x:99999"] {
            let refused = Client::new(&[bad]).expect_err("no address");
            assert_eq!(refused, ClientError::Address { address: bad.to_owned() });
        }
        assert!(Client::new(&Vec::<String>::new()).is_err());
        assert!(Client::new(&["[::1]:7414", "kv.example:7414"]).is_ok());
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_was_changed() {
        let settings = Settings { timeout: Duration::from_millis(300) };
        let client = Client::with(&["127.0.0.1:1"], settings).expect("an address");
        let keyspace = client.keyspace("default");
        let unreachable = |error: &ClientError| matches!(error, ClientError::Unreachable { .. });
        assert!(unreachable(&keyspace.get("k").await.expect_err("nobody")));
        assert!(unreachable(&keyspace.put("k", "v").await.expect_err("nobody")));
    }

    #[test]
    fn several_siblings_are_no_value() {
        let of = |values: &[&'static str]| {
            let values = values.iter().map(|value| Bytes::from_static(value.as_bytes())).collect();
            let state = State::Siblings(Siblings { values, context: Bytes::new() });
            value(Some(Reading { state: Some(state) }))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["a"]), Ok(Some(Bytes::from_static(b"a"))));
        assert!(matches!(of(&["a", "b"]), Err(ClientError::Siblings(_))));
        assert!(matches!(value(None), Err(ClientError::Nonsense(_))));
    }
}
