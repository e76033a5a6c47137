//! Where a session is, and who its client has shown there that it is.

use crate::client::Client;
use crate::error::ClientError;
use bytes::Bytes;
use quorate_api::v1;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The pause before hosts are asked once more to take a session on.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Where a session is at the moment.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct State {
    /// A client of the one host where it is open.
    client: Client,
    pub session: v1::Session,
    /// Who its client has shown that it is: shown anew wherever it goes on.
    credentials: Vec<Credential>,
    /// Counts the beginnings and ends of moves: odd while it moves.
    moves: u64,
    /// Why it is over.
    pub over: Option<ClientError>,
}

/// What shows who somebody is.
#[derive(Clone, PartialEq)]
pub struct Credential {
    pub scheme: String,
    pub shown: Bytes,
}

/// What is shown is nobody else's business.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Shared {
    pub fn new(client: Client, session: v1::Session, timeout: Duration) -> Shared {
        let state = State { client, session, credentials: Vec::new(), moves: 0, over: None };
        Shared { state: Mutex::new(state), timeout }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client of the host where the session is open, and what to show there. It does not try for
    /// longer than until the session may be at another host.
    pub fn place(&self) -> Result<(Client, v1::Session), ClientError> {
        let state = self.state();
        match &state.over {
            Some(why) => Err(why.clone()),
            None => {
                let mut client = state.client.clone();
                let timeout = &mut client.settings.timeout;
                *timeout = (*timeout).min(self.timeout / 3);
                Ok((client, state.session.clone()))
            }
        }
    }

    /// By how far it has moved: odd while it moves.
    pub fn moves(&self) -> u64 {
        self.state().moves
    }

    /// Whether something was asked of a place where the client was maybe not known yet, if it had
    /// moved by so much before.
    pub fn has_moved(&self, moves: u64) -> bool {
        !moves.is_multiple_of(2) || self.moves() != moves
    }

    /// It goes on elsewhere, or anew where it was.
    pub fn leave(&self) {
        self.state().moves += 1;
    }

    /// It goes on at a host, as that says, where so many credentials were shown, if that are all;
    /// else the next.
    pub fn arrive(
        &self,
        (client, session): (&Client, &v1::Session),
        shown: usize,
    ) -> Option<Credential> {
        let mut state = self.state();
        let next = state.credentials.get(shown).cloned();
        if next.is_none() {
            (state.client, state.session) = (client.clone(), session.clone());
            state.moves += 1;
        }
        next
    }

    /// A credential was shown where the session was when it had moved by so much; whether it is
    /// there still.
    pub fn keep(&self, credential: &Credential, moves: u64) -> bool {
        let mut state = self.state();
        if !state.credentials.contains(credential) {
            state.credentials.push(credential.clone());
        }
        moves.is_multiple_of(2) && state.moves == moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_goes_on_where_all_credentials_were_shown() {
        let client = Client::new(&["127.0.0.1:1"]).expect("an address");
        let shared = Shared::new(client.clone(), v1::Session::default(), PAUSE);
        let opened = |opening| v1::Session { opening, ..v1::Session::default() };
        let opening = || shared.place().expect("it is not over").1.opening;
        let credential = |name: &'static str| Credential {
            scheme: String::from("digest"),
            shown: Bytes::from(name),
        };
        let (one, two) = (credential("one:x"), credential("two:x"));
        assert!(shared.keep(&one, shared.moves()) && shared.keep(&one, shared.moves()));
        assert!(!shared.has_moved(0));
        shared.leave();
        assert!(shared.has_moved(0) && shared.has_moved(1), "it moves");
        assert_eq!(shared.arrive((&client, &opened(1)), 0), Some(one));
        assert!(!shared.keep(&two, 0), "where it was");
        assert_eq!(shared.arrive((&client, &opened(1)), 1), Some(two.clone()));
        assert_eq!(opening(), 0, "it is not there yet");
        assert!(!shared.keep(&two, 1), "it may be shown before all others are");
        assert_eq!(shared.arrive((&client, &opened(1)), 2), None);
        assert_eq!(opening(), 1, "what is asked from now on says so");
        assert!(shared.has_moved(0) && shared.has_moved(1) && !shared.has_moved(2));
        assert!(shared.keep(&two, 2), "it is there");
        shared.leave();
        assert_eq!(shared.arrive((&client, &opened(2)), 2), None, "each is kept once");
        assert_eq!(opening(), 2);
    }
}
