//! The doors of clients on the core thread: where each listens, and whom it lets in.

use super::budget::Budget;
use super::facts;
use super::listener::Listener;
use crate::HostError;
use crate::metrics::{DoorCells, Shared};
use crate::token;
use mio::Poll;
use mio::net::TcpStream;
use quorate_doors::{Door, Identity, Opening, Protocol, Shortage};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

/// A door of clients that a host is to open.
#[derive(Clone, Copy, Debug)]
pub struct DoorOptions {
    /// The protocol.
    pub door: &'static Door,
    /// Where it listens.
    pub bind: SocketAddr,
    /// The most clients connected at once.
    pub clients_max: usize,
    /// The most memory in bytes that they may take together; 0 is a quarter of the machine's.
    pub clients_bytes_max: usize,
}

/// A listener, its protocol, and what its clients may take.
pub(crate) struct OpenDoor {
    pub name: &'static str,
    pub protocol: Box<dyn Protocol>,
    pub budget: Budget,
    pub cells: Arc<DoorCells>,
    pub listener: Listener,
    clients: usize,
    clients_max: usize,
}

impl OpenDoor {
    /// Opens a door, the one of this number in the host's list.
    ///
    /// # Errors
    /// Its address cannot be listened on.
    pub fn open(
        poll: &Poll,
        number: usize,
        options: &DoorOptions,
        identity: &Identity,
        shared: &Arc<Shared>,
    ) -> Result<OpenDoor, HostError> {
        let DoorOptions { door, bind, clients_max, clients_bytes_max } = *options;
        let (listener, address) = Listener::open(poll, door.name, bind, token::listener(number))?;
        let cells = Arc::new(DoorCells::new(door.name, address));
        let opening = Opening {
            identity: identity.clone(),
            facts: Box::new(facts::HostFacts::new(shared, &cells)),
            port: address.port(),
            clients_max: clients_max as u64,
        };
        Ok(OpenDoor {
            name: door.name,
            protocol: (door.open)(opening),
            budget: Budget::of(clients_bytes_max),
            cells,
            listener,
            clients: 0,
            clients_max,
        })
    }

    /// Lets a client in if there is room; else it is told so, as far as its socket takes that.
    pub fn admit(&self, mut stream: TcpStream) -> Option<TcpStream> {
        if self.clients < self.clients_max {
            return Some(stream);
        }
        // What it has sent is taken first: closed with something unread, the connection would be
        // reset and the farewell lost.
        drop(stream.read(&mut [0; 4096]));
        drop(stream.write(&self.protocol.turn_away(&Shortage::Clients)));
        None
    }

    /// A client was let in.
    pub fn entered(&mut self) {
        self.clients += 1;
        self.cells.accepted.add(1);
        self.cells.clients.set(self.clients as u64);
    }

    /// A client was closed.
    pub fn left(&mut self) {
        assert!(self.clients > 0, "nobody leaves who did not enter");
        self.clients -= 1;
        self.cells.clients.set(self.clients as u64);
    }
}
