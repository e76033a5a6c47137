//! Keyspaces with one value a key.

use crate::calls::{self, Manner};
use crate::client::Client;
use crate::error::ClientError;
use crate::expiry::Expiry;
use crate::listing::{Listing, Scan};
use crate::seen::Seen;
use crate::transaction::{ItemOutcome, Transaction};
use bytes::Bytes;
use quorate_api::v1;
use quorate_api::v1::Reading;
use quorate_api::v1::place::Place as Where;
use quorate_api::v1::reading::State;

/// A keyspace of a cluster whose keys have one value at most.
///
/// Of an epidemic one it remembers how far in the order the answers were that it has given, and
/// what it asks next comes behind that, at whichever host; clones remember together.
///
/// Of a causal one it shows keys with at most one value, and its writes have seen nothing:
/// [`Causal`](crate::Causal) is made for those.
#[derive(Clone, Debug)]
pub struct Keyspace {
    client: Client,
    name: String,
    seen: Seen,
}

impl Keyspace {
    pub(crate) fn new(client: Client, name: &str) -> Keyspace {
        Keyspace { client, name: name.to_owned(), seen: Seen::default() }
    }

    /// Reads a key; `None` if it has no value.
    ///
    /// # Errors
    /// It could not be read; [`ClientError::Siblings`] if it has several concurrent values.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>, ClientError> {
        let (key, place) = (key.into(), self.seen.place());
        match self.read(key.clone(), place.clone()).await {
            Err(error) if self.seen.forgets(place.as_ref(), &error) => self.read(key, None).await,
            told => told,
        }
    }

    /// Reads a version of a key that a client has chosen: of epidemic keyspaces of level `none`.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn get_version(
        &self,
        key: impl Into<Bytes>,
        version: u64,
    ) -> Result<Option<Bytes>, ClientError> {
        self.read(key.into(), Some(of_version(version))).await
    }

    async fn read(
        &self,
        key: Bytes,
        place: Option<v1::Place>,
    ) -> Result<Option<Bytes>, ClientError> {
        let keyspace = self.name.clone();
        let routed = self.client.route(&keyspace, &key);
        let asked = v1::GetRequest { keyspace, key, place, ..v1::GetRequest::default() };
        let answer =
            calls::read(&self.client, routed, asked, async |mut kv, asked| kv.get(asked).await);
        let reading = answer.await?.reading;
        self.seen.note(reading.as_ref().and_then(|reading| reading.receipt.as_ref()));
        value(reading)
    }

    /// Reads several keys, each by itself.
    ///
    /// # Errors
    /// One of them could not be read.
    pub async fn batch_get(
        &self,
        keys: impl IntoIterator<Item = Bytes>,
    ) -> Result<Vec<Option<Bytes>>, ClientError> {
        let (keys, place) = (keys.into_iter().collect::<Vec<Bytes>>(), self.seen.place());
        let batch = |keys, place| batch(&self.client, &self.name, keys, place);
        let readings = match batch(keys.clone(), place.clone()).await {
            Err(error) if self.seen.forgets(place.as_ref(), &error) => batch(keys, None).await,
            told => told,
        };
        let note = |reading: Reading| {
            self.seen.note(reading.receipt.as_ref());
            value(Some(reading))
        };
        readings?.into_iter().map(note).collect()
    }

    /// Sets the value of a key, which does not expire then.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn put(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<(), ClientError> {
        let (pair, place) = ((key.into(), value.into()), self.seen.place());
        match self.write(pair.clone(), None, place.clone()).await {
            Err(error) if self.seen.forgets(place.as_ref(), &error) => {
                self.write(pair, None, None).await
            }
            told => told,
        }
    }

    /// Sets the value of a version of a key: of epidemic keyspaces of level `none`. Of two values
    /// of a version the one with the larger hash stays.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`]. It is refused if the
    /// version has another value.
    pub async fn put_version(
        &self,
        key: impl Into<Bytes>,
        version: u64,
        value: impl Into<Bytes>,
    ) -> Result<(), ClientError> {
        self.write((key.into(), value.into()), None, Some(of_version(version))).await
    }

    /// Sets the value of a key, and when it expires: of keyspaces whose engine has expiry.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn put_expiring(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        expiry: Expiry,
    ) -> Result<(), ClientError> {
        self.write((key.into(), value.into()), Some(expiry.into()), None).await
    }

    async fn write(
        &self,
        (key, value): (Bytes, Bytes),
        expiry: Option<v1::Expiry>,
        place: Option<v1::Place>,
    ) -> Result<(), ClientError> {
        let make = |options| v1::PutRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            value: value.clone(),
            context: Bytes::new(),
            options: Some(options),
            expiry,
            place: place.clone(),
        };
        let how = (self.client.route(&self.name, &key), Manner::AtOne);
        let call = async |mut kv: calls::Kv, asked| kv.put(asked).await;
        let done = calls::write(&self.client, how, make, call).await?;
        self.seen.note(done.receipt.as_ref());
        Ok(())
    }

    /// Removes a key; whether it had a value.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn delete(&self, key: impl Into<Bytes>) -> Result<bool, ClientError> {
        let (key, place) = (key.into(), self.seen.place());
        match self.remove(key.clone(), place.clone()).await {
            Err(error) if self.seen.forgets(place.as_ref(), &error) => self.remove(key, None).await,
            told => told,
        }
    }

    async fn remove(&self, key: Bytes, place: Option<v1::Place>) -> Result<bool, ClientError> {
        let make = |options| v1::DeleteRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            context: Bytes::new(),
            options: Some(options),
            place: place.clone(),
        };
        let how = (self.client.route(&self.name, &key), Manner::AtOne);
        let call = async |mut kv: calls::Kv, asked| kv.delete(asked).await;
        let done = calls::write(&self.client, how, make, call).await?;
        self.seen.note(done.receipt.as_ref());
        Ok(done.existed)
    }

    /// Does several things at one moment, or nothing: of keyspaces whose engine has transactions.
    /// Answers what each item was told, in their order. It is sent again as a write is.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`]. Of a check that does not
    /// hold it is [`ClientError::Unmet`].
    pub async fn transact(
        &self,
        transaction: Transaction,
    ) -> Result<Vec<ItemOutcome>, ClientError> {
        transaction.run(&self.client, &self.name).await
    }

    /// How a transaction, or a write, ended that failed with [`ClientError::OutcomeUnknown`] and
    /// this token.
    ///
    /// # Errors
    /// [`ClientError::OutcomeUnknown`] if nobody knows yet, with the token, or any more, without.
    pub async fn how_ended(&self, token: Bytes) -> Result<v1::Ended, ClientError> {
        let asked = v1::HowEndedRequest { keyspace: self.name.clone(), token, timeout_ms: 0 };
        let call = async |mut kv: calls::Kv, asked| kv.how_ended(asked).await;
        match calls::read(&self.client, None, asked, call).await?.ended() {
            v1::Ended::Unspecified => Err(ClientError::Nonsense("an end without a word")),
            ended => Ok(ended),
        }
    }

    /// Lists keys, page by page.
    #[must_use]
    pub fn scan(&self, scan: Scan) -> Listing {
        Listing::new(self.client.clone(), &self.name, scan, value)
    }
}

fn of_version(version: u64) -> v1::Place {
    v1::Place { place: Some(Where::Version(version)) }
}

/// Reads several keys.
pub(crate) async fn batch(
    client: &Client,
    name: &str,
    keys: Vec<Bytes>,
    place: Option<v1::Place>,
) -> Result<Vec<Reading>, ClientError> {
    let keyspace = name.to_owned();
    let asked = v1::BatchGetRequest { keyspace, keys, place, ..v1::BatchGetRequest::default() };
    let call = async |mut kv: calls::Kv, asked| kv.batch_get(asked).await;
    Ok(calls::read(client, None, asked, call).await?.readings)
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

    #[test]
    fn several_siblings_are_no_value() {
        let of = |values: &[&'static str]| {
            let values = values.iter().map(|value| Bytes::from_static(value.as_bytes())).collect();
            let state = State::Siblings(Siblings { values, context: Bytes::new() });
            value(Some(Reading { state: Some(state), receipt: None }))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["a"]), Ok(Some(Bytes::from_static(b"a"))));
        assert!(matches!(of(&["a", "b"]), Err(ClientError::Siblings(_))));
        assert!(matches!(value(None), Err(ClientError::Nonsense(_))));
    }
}
