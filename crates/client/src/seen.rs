//! What a client has seen of a keyspace whose answers come with receipts.

use crate::error::ClientError;
use bytes::Bytes;
use quorate_api::v1::place::Place as Where;
use quorate_api::v1::{Kind, Place, Receipt};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest token that an answer has carried; empty where there was none. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Bytes>>);

impl Seen {
    /// Where the next request stands; nowhere of a keyspace that gives no receipts.
    pub fn place(&self) -> Option<Place> {
        let token = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!token.is_empty()).then_some(Place { place: Some(Where::After(token)) })
    }

    /// Whether a request failed for the token that it handed back, which is forgotten then: the
    /// keyspace was made anew under its name, and the request can go without.
    pub fn forgets(&self, place: Option<&Place>, error: &ClientError) -> bool {
        let Some(Place { place: Some(Where::After(token)) }) = place else { return false };
        if error.kind() != Some(Kind::BadContext) {
            return false;
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == *token {
            seen.clear();
        }
        true
    }

    /// Notes an answer. Versions that clients choose have no order: their tokens begin with 0.
    pub fn note(&self, receipt: Option<&Receipt>) {
        let Some(receipt) = receipt.filter(|receipt| receipt.token.first() != Some(&0)) else {
            return;
        };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if receipt.token > *seen {
            *seen = receipt.token.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_token_is_handed_back() {
        let seen = Seen::default();
        assert_eq!(seen.place(), None);
        let receipt = |token: &'static [u8]| Receipt {
            token: Bytes::from_static(token),
            acks: 2,
            is_degraded: false,
        };
        seen.note(None);
        seen.note(Some(&receipt(b"\0\x09")));
        assert_eq!(seen.place(), None, "a client has chosen that one");
        for token in [&b"\x01\x05"[..], b"\x01\x07", b"\x01\x06"] {
            seen.clone().note(Some(&receipt(token)));
        }
        let after = Where::After(Bytes::from_static(b"\x01\x07"));
        assert_eq!(seen.place(), Some(Place { place: Some(after) }));
        let refused = |kind: Kind| {
            let error = quorate_api::v1::Error { kind: kind.into(), ..Default::default() };
            ClientError::Refused(Box::new(error))
        };
        let place = seen.place();
        assert!(!seen.forgets(place.as_ref(), &refused(Kind::Overloaded)));
        assert!(!seen.forgets(None, &refused(Kind::BadContext)));
        assert_eq!(seen.place(), place);
        assert!(seen.forgets(place.as_ref(), &refused(Kind::BadContext)));
        assert_eq!(seen.place(), None, "it is of a keyspace that is gone");
    }
}
