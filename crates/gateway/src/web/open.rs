//! A door on HTTP with a thread and a runtime of its own, so that a slow or hostile client here
//! never costs an operation anything.

use super::serve::{App, serve};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// A door while it is open. Closed when dropped.
pub struct OpenDoor {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl OpenDoor {
    /// Opens the door of this name, and runs `beside` on the same thread until it is closed.
    ///
    /// # Errors
    /// The listener or the thread cannot be had; nothing was started.
    pub fn open(
        name: &'static str,
        bind: SocketAddr,
        app: App,
        beside: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<OpenDoor> {
        let listener = TcpListener::bind(bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let run = async move {
            tokio::spawn(beside);
            serve(tokio::net::TcpListener::from_std(listener)?, app, stopped).await
        };
        let run = move || {
            if let Err(error) = runtime.block_on(run) {
                tracing::error!(event = "door_failed", door = name, %error, "it answers no more");
            }
        };
        let thread = std::thread::Builder::new().name(String::from(name)).spawn(run)?;
        Ok(OpenDoor { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OpenDoor {
    fn drop(&mut self) {
        // A thread that panicked has already said so.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
