//! What two hosts say of each other: hellos, refusals, and how far each has synced.

use super::{Link, Links, PROGRESS_EVERY, SILENT_WITHIN, io, mark, progress};
use crate::host::handshake::{Hello, HelloError, Word};
use crate::host::meeting::Verdict;
use quorate_kernel::ids::{Incarnation, Lsn, NodeId};
use quorate_kernel::limits::PEER_QUEUE_BYTES_MAX;
use quorate_kernel::sighting::Sighting;
use std::time::Instant;

impl Link {
    pub(super) fn say(&mut self, me: Incarnation, to: NodeId, synced: Lsn) {
        self.out.push(progress::frame(me, to, synced));
        self.said = Some((synced, Instant::now()));
    }
}

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

    /// Says how far this host has synced where that was not said lately.
    pub(super) fn tell_progress(&mut self) {
        let is_due = |said: &Option<(Lsn, Instant)>| {
            said.is_none_or(|(lsn, at)| lsn < self.synced || at.elapsed() >= PROGRESS_EVERY)
        };
        for (key, link) in self.links.iter_mut().filter(|(_, link)| link.is_up) {
            if is_due(&link.said) && link.out.len() < PEER_QUEUE_BYTES_MAX {
                link.say(self.hello.from, link.greeted.0.node, self.synced);
                mark(&mut link.is_dirty, &mut self.dirty, key);
            }
        }
    }

    /// A peer said hello: the connection carries frames from now on.
    pub(super) fn greet(&mut self, key: usize, hello: &Hello) -> Result<(), HelloError> {
        self.hello.check(hello)?;
        let node = hello.from.node;
        self.meeting.hear(node, &hello.word, Instant::now())?;
        let rival = self.rival(key, hello);
        let greeted = match self.peers.check(hello) {
            Ok(()) if rival => Err(HelloError::There { node, start: hello.from.start.0 }),
            _ => self.peers.greet(hello),
        };
        let index = greeted.inspect_err(|_| self.answer_refused(key, node, rival))?;
        let Some(peer) = self.peers.get_mut(index) else { return Ok(()) };
        let replaced = peer.link.replace(key).filter(|old| *old != key);
        peer.cells.set_up(&self.shared, true);
        let link = &mut self.links[key];
        if link.peer.is_none() {
            let reply = Hello { to: node, word: self.peers.word(node), ..self.hello };
            link.out.push_slice(&reply.to_bytes());
            mark(&mut link.is_dirty, &mut self.dirty, key);
        }
        link.peer = Some(index);
        link.is_up = true;
        link.greeted = (hello.from, hello.run);
        if self.is_speaking {
            link.say(self.hello.from, node, self.synced);
            mark(&mut link.is_dirty, &mut self.dirty, key);
        }
        if let Some(old) = replaced {
            self.links.try_remove(old);
        }
        tracing::info!(event = "peer_up", peer = %node, start = hello.from.start.0);
        Ok(())
    }

    /// Whether another process of the node that says hello is connected and lives.
    fn rival(&self, key: usize, hello: &Hello) -> bool {
        let peer = self.peers.find(hello.from.node).and_then(|index| self.peers.get(index));
        let other = peer.and_then(|peer| peer.link).filter(|other| *other != key);
        let other = other.and_then(|other| self.links.get(other)).filter(|link| link.is_up);
        other.is_some_and(|link| {
            link.greeted != (hello.from, hello.run) && link.heard_at.elapsed() < SILENT_WITHIN
        })
    }

    /// Tells a host that connected and is refused what is known of it, as far as that can be sent
    /// at once: it may have to end.
    fn answer_refused(&mut self, key: usize, node: NodeId, is_there: bool) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.peer.is_none()) else { return };
        let word = Word { is_there, ..self.peers.word(node) };
        let reply = Hello { to: node, word, ..self.hello };
        link.out.push_slice(&reply.to_bytes());
        // If it is not taken, the other one connects again.
        drop(io::write(&mut link.stream, &mut link.out));
    }
}
