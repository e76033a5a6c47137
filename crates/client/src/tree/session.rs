//! Sessions: kept alive in the background, and taken to another host when theirs is gone.

use super::place::{Credential, PAUSE, Shared};
use super::{Stub, Tree};
use crate::calls;
use crate::client::Client;
use crate::error::ClientError;
use bytes::Bytes;
use quorate_api::v1;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::Streaming;

/// A session with a tree: nodes that are made for it and are ephemeral end with it.
///
/// It is kept alive in the background. When it is dropped it ends by itself after its time-out;
/// [`TreeSession::close`] ends it at once.
#[derive(Debug)]
pub struct TreeSession {
    tree: Tree,
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
    over: watch::Receiver<bool>,
}

type Stream = Streaming<v1::OpenSessionResponse>;

impl TreeSession {
    pub(super) async fn open(tree: &Tree, timeout: Duration) -> Result<TreeSession, ClientError> {
        let (mut turn, mut failure) = (tree.client.hosts.preferred(), None);
        let wished = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        for _ in 0..tree.client.hosts.count() {
            let client = tree.client.alone(turn);
            match begin(&client, &tree.keyspace, wished, None).await {
                Ok((first, stream)) => return Ok(TreeSession::new(tree, turn, first, stream)),
                Err(error) => failure = Some(error),
            }
            turn += 1;
        }
        Err(failure.unwrap_or(ClientError::Address { address: String::new() }))
    }

    fn new(
        tree: &Tree,
        turn: usize,
        first: v1::OpenSessionResponse,
        stream: Stream,
    ) -> TreeSession {
        let session = first.session.unwrap_or_default();
        let client = tree.client.alone(turn);
        let timeout = Duration::from_millis(first.session_timeout_ms.into());
        let shared = Arc::new(Shared::new(client, session, timeout));
        let (told, over) = watch::channel(false);
        let keeper = Keeper {
            all: tree.client.clone(),
            keyspace: tree.keyspace.clone(),
            shared: Arc::clone(&shared),
            turn,
        };
        let keeper = tokio::spawn(async move {
            let why = keeper.keep(stream).await;
            keeper.shared.state().over = Some(why);
            // Nobody may listen any more.
            let _ = told.send(true);
        });
        let tree = Tree { session: Some(Arc::clone(&shared)), ..tree.clone() };
        TreeSession { tree, shared, keeper, over }
    }

    /// The tree, as the client of this session works on it.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Names it for ever.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.state().session.id
    }

    /// How long its client may be silent.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// Shows who the client is, beside what it has shown before. It is shown anew when the session
    /// goes on at another host.
    ///
    /// # Errors
    /// The credential is not valid, or the session is over.
    pub async fn authenticate(
        &self,
        scheme: &str,
        credential: impl Into<Bytes>,
    ) -> Result<(), ClientError> {
        let credential = Credential { scheme: scheme.to_owned(), shown: credential.into() };
        let deadline = self.tree.deadline();
        loop {
            let moves = self.shared.moves();
            let (client, session) = self.shared.place()?;
            match show(&client, &self.tree.keyspace, session, credential.clone()).await {
                // It went on meanwhile.
                Err(error) if self.tree.goes_on(Some(&error), moves, deadline).await => {}
                Err(error) => return Err(error),
                Ok(_) if self.shared.keep(&credential, moves) => return Ok(()),
                Ok(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits until the session is over; why it is.
    pub async fn over(&mut self) -> ClientError {
        // It is told at last, or the keeper is gone.
        let _ = self.over.wait_for(|is_over| *is_over).await;
        self.shared.state().over.clone().unwrap_or_else(stopped)
    }

    /// Ends the session, and its ephemeral nodes. That it has ended already is no error: the answer
    /// to an earlier try may have been lost.
    ///
    /// # Errors
    /// It may still be there: it ends by itself after its time-out.
    pub async fn close(self) -> Result<(), ClientError> {
        let deadline = self.tree.deadline();
        loop {
            let moves = self.shared.moves();
            match self.try_to_close().await {
                Err(why) if why.node_failure() == Some(v1::NodeFailure::SessionExpired) => {
                    return Ok(());
                }
                Err(why) if self.tree.goes_on(Some(&why), moves, deadline).await => {}
                closed => return closed,
            }
        }
    }

    async fn try_to_close(&self) -> Result<(), ClientError> {
        let (client, session) = self.shared.place()?;
        let (keyspace, session) = (self.tree.keyspace.clone(), Some(session));
        let asked = v1::CloseSessionRequest { keyspace, session };
        let call = async |mut tree: Stub, asked| tree.close_session(asked).await;
        calls::read_of(&client, None, asked, call).await.map(drop)
    }
}

impl Drop for TreeSession {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

fn stopped() -> ClientError {
    ClientError::Unreachable { why: String::from("the session is not kept alive any more") }
}

/// Asks a host for a session, or to go on with one.
async fn begin(
    client: &Client,
    keyspace: &str,
    session_timeout_ms: u32,
    resume: Option<v1::Session>,
) -> Result<(v1::OpenSessionResponse, Stream), ClientError> {
    let keyspace = keyspace.to_owned();
    let asked = v1::OpenSessionRequest { keyspace, session_timeout_ms, resume };
    let call = async |mut tree: Stub, asked| tree.open_session(asked).await;
    let mut stream = calls::read_of(client, None, asked, call).await?;
    let first = stream.message().await.map_err(|status| ClientError::of_stream(&status))?;
    let nothing = ClientError::Nonsense("a session that does not say which it is");
    Ok((first.ok_or(nothing)?, stream))
}

/// Shows a host who the client of a session is.
async fn show(
    client: &Client,
    keyspace: &str,
    session: v1::Session,
    Credential { scheme, shown: credential }: Credential,
) -> Result<(), ClientError> {
    let (keyspace, session) = (keyspace.to_owned(), Some(session));
    let asked = v1::AuthenticateRequest { keyspace, session, scheme, credential };
    let call = async |mut tree: Stub, asked| tree.authenticate(asked).await;
    calls::read_of(client, None, asked, call).await.map(drop)
}

/// Keeps a session alive.
struct Keeper {
    all: Client,
    keyspace: String,
    shared: Arc<Shared>,
    turn: usize,
}

impl Keeper {
    /// Until the session is over; why it is.
    async fn keep(&self, mut stream: Stream) -> ClientError {
        let every = (self.shared.timeout / 3).max(Duration::from_millis(1));
        let mut heard = Instant::now();
        let mut turn = self.turn;
        loop {
            let lost = match tokio::time::timeout(every, stream.message()).await {
                Ok(Ok(Some(_))) => continue,
                Ok(Ok(None)) => return stopped(),
                Ok(Err(status)) => ClientError::of_stream(&status),
                Err(_) => match self.say().await {
                    Ok(()) => {
                        heard = Instant::now();
                        continue;
                    }
                    Err(error) => error,
                },
            };
            if is_final(&lost) {
                return lost;
            }
            stream = match self.resume(&mut turn, heard).await {
                Ok(stream) => stream,
                Err(error) => return error,
            };
            heard = Instant::now();
        }
    }

    /// Says that the client is there.
    async fn say(&self) -> Result<(), ClientError> {
        let (client, session) = self.shared.place()?;
        let asked =
            v1::KeepAliveRequest { keyspace: self.keyspace.clone(), session: Some(session) };
        let call = async |mut tree: Stub, asked| tree.keep_alive(asked).await;
        let within = self.shared.timeout / 3;
        let said = calls::read_of(&client, None, asked, call);
        match tokio::time::timeout(within, said).await {
            Ok(said) => said.map(drop),
            Err(_) => Err(ClientError::Unreachable { why: String::from("no answer came") }),
        }
    }

    /// Has another host take the session on, or the same one again.
    async fn resume(&self, turn: &mut usize, heard: Instant) -> Result<Stream, ClientError> {
        self.shared.leave();
        loop {
            *turn += 1;
            let client = self.all.alone(*turn);
            let begun = self.go_on(&client);
            let failure = match tokio::time::timeout(self.shared.timeout / 3, begun).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => error,
                Err(_) => ClientError::Unreachable { why: String::from("no answer came") },
            };
            if is_final(&failure) || heard.elapsed() > 2 * self.shared.timeout {
                return Err(failure);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Goes on at a host, which knows who the client is before anything else is asked there.
    async fn go_on(&self, client: &Client) -> Result<Stream, ClientError> {
        let session = self.shared.state().session.clone();
        let (first, stream) = begin(client, &self.keyspace, 0, Some(session.clone())).await?;
        // The host says which opening this is, and refuses what was asked in earlier ones.
        let session = first.session.unwrap_or(session);
        let mut shown = 0;
        while let Some(credential) = self.shared.arrive((client, &session), shown) {
            show(client, &self.keyspace, session.clone(), credential).await?;
            shown += 1;
        }
        Ok(stream)
    }
}

/// Whether a session is over by such an error.
fn is_final(error: &ClientError) -> bool {
    use v1::NodeFailure::SessionExpired;
    match error {
        ClientError::Refused(why) => {
            let is_retried = matches!(
                why.kind(),
                v1::Kind::NoQuorum | v1::Kind::Overloaded | v1::Kind::Stopping
            );
            let is_moved = why.node_failure() == v1::NodeFailure::SessionMoved;
            why.node_failure() == SessionExpired || !(is_retried || is_moved)
        }
        ClientError::Unreachable { .. } | ClientError::OutcomeUnknown { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_over_when_it_has_expired_and_not_when_its_host_is_gone() {
        let refused = |kind: v1::Kind, failure: v1::NodeFailure| {
            ClientError::Refused(Box::new(v1::Error {
                kind: kind.into(),
                node_failure: failure.into(),
                ..v1::Error::default()
            }))
        };
        let none = v1::NodeFailure::Unspecified;
        for (error, is_over) in [
            (refused(v1::Kind::Conflict, v1::NodeFailure::SessionExpired), true),
            (refused(v1::Kind::Conflict, v1::NodeFailure::SessionMoved), false),
            (refused(v1::Kind::Stopping, none), false),
            (refused(v1::Kind::NoQuorum, none), false),
            (refused(v1::Kind::NoKeyspace, none), true),
            (ClientError::Unreachable { why: String::new() }, false),
        ] {
            assert_eq!(is_final(&error), is_over, "{error:?}");
        }
    }
}
