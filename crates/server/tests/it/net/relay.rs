//! Relays between hosts that pass everything on after a while, each way.
//!
//! A host behind a relay tells others the relay's address for its own. So what goes to it and back
//! on connections that others opened is late; what it opens itself is late at the other's relay.

use super::sandbox::Sandbox;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most pieces under way in one direction of a connection.
const PIECES_MAX: usize = 1024;

/// What the threads of a relay share.
struct Common {
    target: String,
    delay_ms: AtomicU64,
    is_over: AtomicBool,
}

/// A relay in front of one door; it takes no more connections once dropped.
pub struct Relay<'a> {
    sandbox: &'a Sandbox,
    address: SocketAddr,
    common: Arc<Common>,
    accepts: Option<JoinHandle<()>>,
}

impl<'a> Relay<'a> {
    /// A relay to a door, without a delay. To be made where the clients are.
    pub fn to(sandbox: &'a Sandbox, target: String) -> Relay<'a> {
        let common = Arc::new(Common {
            target,
            delay_ms: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&common);
        let (listener, address) = (sandbox.relays(), sandbox.relays_address());
        // A thread stays where it was started.
        let (address, accepts) = listener.within(|| {
            let listener = TcpListener::bind((address, 0)).expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            (address, std::thread::spawn(move || accept(&listener, &shared)))
        });
        Relay { sandbox, address, common, accepts: Some(accepts) }
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Has everything that it reads from now on wait this long.
    pub fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).expect("a delay is short");
        self.common.delay_ms.store(millis, Ordering::Relaxed);
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        self.common.is_over.store(true, Ordering::Relaxed);
        // One more connection, so that the thread looks.
        drop(self.sandbox.relays().within(|| TcpStream::connect(self.address)));
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

fn accept(listener: &TcpListener, common: &Arc<Common>) {
    while let Ok((near, _)) = listener.accept() {
        if common.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Nobody there: whoever connected sees that at once, and tries again.
        let Ok(far) = TcpStream::connect(&common.target) else { continue };
        let twice = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
        pass(twice(&near), twice(&far), common);
        pass(far, near, common);
    }
}

/// Passes on what one side says, until it or the other one is gone.
fn pass(mut from: TcpStream, mut to: TcpStream, common: &Arc<Common>) {
    type Piece = (Instant, Vec<u8>);
    let (sender, pieces): (SyncSender<Piece>, Receiver<Piece>) = sync_channel(PIECES_MAX);
    to.set_nodelay(true).expect("a socket");
    let common = Arc::clone(common);
    std::thread::spawn(move || {
        let mut room = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut room) {
            let delay = Duration::from_millis(common.delay_ms.load(Ordering::Relaxed));
            if sender.send((Instant::now() + delay, room[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, piece) in pieces {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // What the other side still says is for nobody.
        let _ = to.shutdown(Shutdown::Both);
    });
}
