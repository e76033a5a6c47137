//! The one request to stop that a host takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the host was asked to stop, and who must be woken to notice.
#[derive(Default)]
pub struct Shutdown {
    is_requested: AtomicBool,
    wakers: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Shutdown {
    /// Asks the host to stop: raises the flag, then wakes whoever asked to be woken.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|wake| wake());
    }

    /// Whether the host was asked to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    /// Has `wake` called when the host is asked to stop, at once if it already was. A thread that
    /// sleeps in a poll passes what ends its sleep.
    pub fn on_request(&self, wake: impl Fn() + Send + 'static) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_requested() {
            wake();
        }
        wakers.push(Box::new(wake));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;

    #[test]
    fn a_request_wakes_those_who_asked_before_and_after() {
        let shutdown = Arc::new(Shutdown::default());
        let (sender, woken) = mpsc::channel();
        let early = sender.clone();
        shutdown.on_request(move || early.send("early").expect("the test listens"));
        assert!(!shutdown.is_requested());
        assert!(woken.try_recv().is_err());
        shutdown.request();
        assert!(shutdown.is_requested());
        assert_eq!(woken.try_recv(), Ok("early"));
        shutdown.on_request(move || sender.send("late").expect("the test listens"));
        assert_eq!(woken.try_recv(), Ok("late"));
    }
}
