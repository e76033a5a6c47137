//! How many connections a door has at once.

use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The place of a connection among those that are served, or among the spare ones.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    pub is_spare: bool,
}

/// The places of a door.
pub(super) struct Places {
    room: Arc<Semaphore>,
    spare: Arc<Semaphore>,
}

impl Places {
    /// So many that are served, and so many spare ones.
    pub fn new(connections_max: usize, spare_max: usize) -> Places {
        let counted = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Places { room: counted(connections_max), spare: counted(spare_max) }
    }

    /// Waits for a place, and for a connection that takes it.
    pub async fn accept(&self, listener: &TcpListener) -> std::io::Result<(Place, TcpStream)> {
        let place = |permit: Result<OwnedSemaphorePermit, AcquireError>, is_spare| Place {
            _permit: permit.expect("the semaphore is never closed"),
            is_spare,
        };
        let any = tokio::select! {
            biased;
            permit = Arc::clone(&self.room).acquire_owned() => place(permit, false),
            permit = Arc::clone(&self.spare).acquire_owned() => place(permit, true),
        };
        let (stream, _) = listener.accept().await?;
        // Some may have closed while nobody came.
        let better =
            any.is_spare.then(|| Arc::clone(&self.room).try_acquire_owned().ok()).flatten();
        Ok((better.map_or(any, |permit| place(Ok(permit), false)), stream))
    }
}
