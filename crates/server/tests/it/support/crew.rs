//! Clients in threads of their own, which work until they are told to end.

use super::cluster::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause after each operation: the judges look at every operation, so a history is kept small.
const PAUSE: Duration = Duration::from_millis(1);

/// What the clients share.
pub struct Shift {
    epoch: Instant,
    is_over: AtomicBool,
    answered: AtomicUsize,
}

impl Shift {
    /// Whether a client is to ask once more.
    pub fn goes_on(&self) -> bool {
        std::thread::sleep(PAUSE);
        !self.is_over.load(Ordering::Relaxed)
    }

    /// A client was answered.
    pub fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Nanoseconds since the clients began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).expect("a test is short")
    }
}

/// Clients at work.
pub struct Crew {
    shift: Arc<Shift>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts so many clients, which have numbers from 0.
    pub fn start(count: usize, work: impl Fn(usize, &Shift) + Send + Sync + 'static) -> Crew {
        let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shift = Arc::new(Shift { epoch: Instant::now(), is_over, answered });
        let work = Arc::new(work);
        let client = |number| {
            let (work, shift) = (Arc::clone(&work), Arc::clone(&shift));
            std::thread::spawn(move || work(number, &shift))
        };
        let threads = (0..count).map(client).collect();
        Crew { shift, threads }
    }

    /// What the clients share.
    pub fn shift(&self) -> &Shift {
        &self.shift
    }

    /// Waits until this many more operations were answered.
    pub fn more(&self, count: usize) {
        let answered = || self.shift.answered.load(Ordering::Relaxed);
        let goal = answered() + count;
        until("clients are answered", || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished), "a client has failed");
            answered() >= goal
        });
    }

    /// Ends the clients.
    pub fn end(&mut self) {
        self.shift.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a client panicked");
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}
