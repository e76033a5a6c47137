//! Listeners that the poller watches: who waits at a door, also when the system lets nobody in.

use crate::HostError;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Registry, Token};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// One listener. The poller says once that somebody waits, and not again until all were taken.
pub(crate) struct Listener {
    socket: TcpListener,
    door: &'static str,
    token: Token,
    /// Somebody waited, and could not be taken.
    has_failed: bool,
}

impl Listener {
    /// Listens; also the address that the system has given.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn open(
        poll: &Poll,
        door: &'static str,
        address: SocketAddr,
        token: Token,
    ) -> Result<(Listener, SocketAddr), HostError> {
        let refused = |source| HostError::Bind { door, address, source };
        let mut socket = TcpListener::bind(address).map_err(refused)?;
        let bound = socket.local_addr().map_err(refused)?;
        poll.registry().register(&mut socket, token, Interest::READABLE).map_err(refused)?;
        Ok((Listener { socket, door, token, has_failed: false }, bound))
    }

    /// The next connection that waits, if one does and can be taken. After one that could not be,
    /// [`Listener::rearm_failed`] must be called from time to time.
    ///
    /// # Errors
    /// It cannot be taken, as while no file can be opened. That is said once, and logged, until one
    /// is taken again or nobody waits.
    pub fn next(&mut self) -> io::Result<Option<TcpStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => {
                self.has_failed = false;
                Ok(Some(stream))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.has_failed = false;
                Ok(None)
            }
            Err(_) if self.has_failed => Ok(None),
            Err(error) => {
                self.has_failed = true;
                tracing::warn!(event = "accept_failed", door = self.door, %error);
                Err(error)
            }
        }
    }

    /// Has the poller look afresh if somebody could not be taken.
    pub fn rearm_failed(&mut self, registry: &Registry) {
        if self.has_failed {
            self.rearm(registry);
        }
    }

    /// Has the poller look afresh: more may wait, and it would not say so again.
    pub fn rearm(&mut self, registry: &Registry) {
        if let Err(error) = registry.reregister(&mut self.socket, self.token, Interest::READABLE) {
            tracing::warn!(event = "rearm_failed", door = self.door, %error);
        }
    }
}
