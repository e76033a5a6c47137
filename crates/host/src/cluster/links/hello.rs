//! What two hosts say of each other: hellos, refusals, and how far each has synced.

use super::{Greeting, Links, PROGRESS_EVERY, SILENT_WITHIN, mark};
use crate::cluster::handshake::{Hello, HelloError, Word};
use crate::cluster::meeting::Verdict;
use quorate_kernel::ids::{Lsn, NodeId};
use quorate_kernel::limits::PEER_QUEUE_BYTES_MAX;
use quorate_kernel::sighting::Sighting;
use std::time::Instant;

impl Links {
    /// Whether the meeting with the other hosts has just come to its end. What leaves from now on
    /// must wait for [`Links::speak`].
    pub fn has_met(&mut self, now: Instant) -> bool {
        !self.is_speaking && self.meeting.comes_to_its_end(&self.peers.listed(), now)
    }

    /// Lets frames leave.
    pub fn speak(&mut self) {
        self.is_speaking = true;
        self.tell_progress();
    }

    /// Whether frames may leave.
    pub fn is_speaking(&self) -> bool {
        self.is_speaking
    }

    /// Why this host must end, if it must.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdict = self.meeting.verdict().cloned();
        if self.peers.is_removed { Some(Verdict::Removed) } else { verdict }
    }

    /// The log has synced this far.
    pub fn set_synced(&mut self, synced: Lsn) {
        self.synced = synced;
    }

    /// What was seen of the other hosts, if it has changed since this was last asked.
    pub fn take_seen(&mut self) -> Option<Vec<Sighting>> {
        self.peers.take_seen()
    }

    /// Says how far this host has synced where that was not said recently.
    pub(super) fn tell_progress(&mut self) {
        let is_due = |said: &Option<(Lsn, Instant)>| {
            said.is_none_or(|(lsn, at)| lsn < self.synced || at.elapsed() >= PROGRESS_EVERY)
        };
        for (key, link) in self.links.iter_mut().filter(|(_, link)| link.is_up()) {
            let is_new = link.left_said != Some(self.peers.left().len());
            if (is_due(&link.said) || is_new) && link.waiting() < PEER_QUEUE_BYTES_MAX {
                let report = link.report(self.synced, self.peers.left());
                link.say(self.hello.from, link.greeted.0.node, &report);
                mark(&mut link.is_dirty, &mut self.dirty, key);
            }
        }
    }

    /// A peer said hello: the connection carries frames from now on.
    pub(super) fn greet(&mut self, key: usize, greeting: &Greeting) -> Result<(), HelloError> {
        let hello = &greeting.hello;
        self.hello.check(hello)?;
        let node = hello.from.node;
        let dialled = self.links.get(key).and_then(|link| link.peer);
        let dialled = dialled.and_then(|index| self.peers.get(index)).map(|peer| peer.node);
        if let Some(wanted) = dialled.filter(|wanted| *wanted != node) {
            return Err(HelloError::Other { wanted, found: node });
        }
        self.meeting.hear(node, &hello.word, Instant::now())?;
        let rival = self.rival(key, hello);
        let greeted = match self.peers.check(hello) {
            Ok(()) if rival => Err(HelloError::There { node, start: hello.from.start.0 }),
            _ => self.peers.greet(hello),
        };
        let index = greeted.inspect_err(|_| self.answer_refused(key, node, rival))?;
        let Some(peer) = self.peers.get_mut(index) else { return Ok(()) };
        let replaced = peer.link.replace(key).filter(|old| *old != key);
        peer.away_since = None;
        peer.cells.set_up(&self.shared, true);
        let word = self.peers.word(node);
        let reply = dialled.is_none().then_some(Hello { to: node, word, ..self.hello });
        let link = &mut self.links[key];
        link.open(hello.from, reply.as_ref(), greeting.encrypts);
        link.peer = Some(index);
        link.greeted = (hello.from, hello.run);
        if self.is_speaking {
            let report = link.report(self.synced, self.peers.left());
            link.say(self.hello.from, node, &report);
        }
        mark(&mut link.is_dirty, &mut self.dirty, key);
        if let Some(old) = replaced {
            self.close(old);
        }
        tracing::info!(event = "peer_up", peer = %node, start = hello.from.start.0);
        Ok(())
    }

    /// Whether another process of the node that says hello is connected and lives.
    fn rival(&self, key: usize, hello: &Hello) -> bool {
        let peer = self.peers.find(hello.from.node).and_then(|index| self.peers.get(index));
        let other = peer.and_then(|peer| peer.link).filter(|other| *other != key);
        let other = other.and_then(|other| self.links.get(other)).filter(|link| link.is_up());
        other.is_some_and(|link| {
            link.greeted != (hello.from, hello.run) && link.heard_at.elapsed() < SILENT_WITHIN
        })
    }

    /// Tells a host that connected and is refused what is known of it, as far as that can be sent
    /// at once: it may have to end.
    fn answer_refused(&mut self, key: usize, node: NodeId, is_there: bool) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.peer.is_none()) else { return };
        let word = Word { is_there, ..self.peers.word(node) };
        link.answer(&Hello { to: node, word, ..self.hello });
    }
}
