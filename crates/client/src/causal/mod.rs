//! Causal keyspaces: all values of a key that nobody has replaced, and contexts. `merging` is for
//! programs that know what siblings come to.

mod merging;

pub use merging::Merging;

use crate::calls::{self, Manner};
use crate::client::Client;
use crate::error::ClientError;
use crate::keyspace::batch;
use crate::listing::{Listing, Scan};
use bytes::Bytes;
use quorate_api::v1;
use quorate_api::v1::reading::State;
use quorate_api::v1::{Reading, Siblings};

/// A causal keyspace of a cluster.
///
/// A key holds all values that were written without having seen each other. Whoever reads it gets
/// them with a **context**, and a write that gives the context back takes the place of exactly what
/// was seen. Any one host that can be reached is enough for all of it.
///
/// A write of which no answer comes is sent on to the next host under its id, which stays with the
/// version: versions of one id are one value. A value that was replaced between the two may show up
/// once more, beside what replaced it.
#[derive(Clone, Debug)]
pub struct Causal {
    client: Client,
    name: String,
}

impl Client {
    /// A causal keyspace. Whether it exists, and is one, is seen by the first call.
    #[must_use]
    pub fn causal(&self, name: &str) -> Causal {
        Causal { client: self.clone(), name: name.to_owned() }
    }
}

impl Causal {
    /// Reads all values of a key, none if it has none, and the context that covers them. Their
    /// order means nothing.
    ///
    /// # Errors
    /// It could not be read; [`ClientError::NoSiblings`] if the keyspace has registers.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Siblings, ClientError> {
        self.get_from(key, 0).await
    }

    /// The same, when so many replicas have answered; 0 is what the keyspace says.
    ///
    /// # Errors
    /// See [`Causal::get`].
    pub async fn get_from(
        &self,
        key: impl Into<Bytes>,
        replicas: u32,
    ) -> Result<Siblings, ClientError> {
        let (keyspace, key) = (self.name.clone(), key.into());
        let asked = v1::GetRequest { keyspace, key, replicas, ..v1::GetRequest::default() };
        // The host that answered last has what this client wrote, so it is asked again.
        let answer =
            calls::read(&self.client, None, asked, async |mut kv, asked| kv.get(asked).await);
        siblings(answer.await?.reading)
    }

    /// Reads several keys, each by itself.
    ///
    /// # Errors
    /// See [`Causal::get`].
    pub async fn batch_get(
        &self,
        keys: impl IntoIterator<Item = Bytes>,
    ) -> Result<Vec<Siblings>, ClientError> {
        let keys = keys.into_iter().collect();
        let readings = batch(&self.client, &self.name, keys, None).await?;
        readings.into_iter().map(|reading| siblings(Some(reading))).collect()
    }

    /// Writes a value in place of what a context covers, of an earlier answer on this key; with an
    /// empty one beside all that is there. Returns the context for the next write of this key,
    /// empty if it has values that this client has not seen: it must read them first.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn put(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        context: impl Into<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let (key, value, context) = (key.into(), value.into(), context.into());
        let make = |options| v1::PutRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            value: value.clone(),
            context: context.clone(),
            options: Some(options),
            ..v1::PutRequest::default()
        };
        let call = async |mut kv: calls::Kv, asked| kv.put(asked).await;
        let done = calls::write(&self.client, (None, Manner::Anywhere), make, call).await?;
        Ok(done.context)
    }

    /// Removes the values that a context covers; with an empty one whatever the host has. Returns
    /// the context for the next write, as [`Causal::put`] does.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn delete(
        &self,
        key: impl Into<Bytes>,
        context: impl Into<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let (key, context) = (key.into(), context.into());
        // Without a context it removes what is there when it is done, so it is done at one time.
        let manner = if context.is_empty() { Manner::AtOne } else { Manner::Anywhere };
        let make = |options| v1::DeleteRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            context: context.clone(),
            options: Some(options),
            place: None,
        };
        let call = async |mut kv: calls::Kv, asked| kv.delete(asked).await;
        Ok(calls::write(&self.client, (None, manner), make, call).await?.context)
    }

    /// Reads a key and writes what `merge` makes of all its values; returns what that was.
    ///
    /// `merge` gets the values, none if the key has none, and returns the one that takes their
    /// place, or `None` to remove them. What others write meanwhile is kept beside it for the next
    /// merge: so `merge` should not depend on the order of the values, and should lose nothing that
    /// it is given. Nothing is written if the value is there already, alone.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn update(
        &self,
        key: impl Into<Bytes>,
        merge: impl FnOnce(&[Bytes]) -> Option<Bytes>,
    ) -> Result<Option<Bytes>, ClientError> {
        let key = key.into();
        let Siblings { values, context } = self.get(key.clone()).await?;
        let merged = merge(&values);
        match &merged {
            Some(value) if values != [value] => {
                self.put(key, value.clone(), context).await?;
            }
            None if !values.is_empty() => {
                self.delete(key, context).await?;
            }
            Some(_) | None => {}
        }
        Ok(merged)
    }

    /// Lists keys, page by page, with all their values if values are asked for.
    #[must_use]
    pub fn scan(&self, scan: Scan) -> Listing<Siblings> {
        Listing::new(self.client.clone(), &self.name, scan, |reading| siblings(reading).map(Some))
    }
}

/// All values of a reading.
fn siblings(reading: Option<Reading>) -> Result<Siblings, ClientError> {
    match reading.and_then(|reading| reading.state) {
        Some(State::Siblings(siblings)) => Ok(siblings),
        Some(State::Value(_) | State::Absent(_)) => Err(ClientError::NoSiblings),
        None => Err(ClientError::Nonsense("a reading without a state")),
    }
}
