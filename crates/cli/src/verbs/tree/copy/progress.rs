//! How far a copy is, on standard error.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

/// How often it is told.
const EVERY: Duration = Duration::from_secs(2);

/// What was copied so far.
#[derive(Debug)]
pub struct Progress {
    verb: &'static str,
    pub nodes: u64,
    pub bytes: u64,
    /// Ephemeral nodes, which are not copied.
    pub ephemeral: u64,
    told: Instant,
}

impl Progress {
    /// Nothing was copied; `verb` says what is done, as something that was done.
    pub fn new(verb: &'static str) -> Progress {
        Progress { verb, nodes: 0, bytes: 0, ephemeral: 0, told: Instant::now() }
    }

    /// A node was copied.
    pub fn copied(&mut self, bytes: usize) {
        self.nodes += 1;
        self.bytes += bytes as u64;
        if self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            self.tell();
        }
    }

    /// Tells how far it is; the last time when it has ended.
    pub fn tell(&self) {
        // Nobody may listen.
        let _ = writeln!(stderr(), "{}", self.text());
    }

    fn text(&self) -> String {
        let Progress { verb, nodes, bytes, ephemeral, .. } = self;
        format!("{verb} {nodes} nodes, {bytes} bytes; {ephemeral} ephemeral nodes skipped")
    }
}

#[test]
fn it_says_what_was_copied_and_what_was_not() {
    let mut progress = Progress::new("imported");
    progress.copied(7);
    progress.ephemeral += 1;
    assert_eq!(progress.text(), "imported 1 nodes, 7 bytes; 1 ephemeral nodes skipped");
}
