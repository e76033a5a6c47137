//! Taking over what was decided: the one place where the catalog changes. And telling others.

use super::decree::{Entry, Origin};
use super::fold::Catalog;
use crate::catalog::message::{Message, Purpose};
use crate::catalog::state::{Doing, Want};
use crate::catalog::{CatalogLane, Context, keys};
use crate::reconfigure::{Acceptor, Value};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::DECREES_KEPT;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl CatalogLane {
    /// A peer says how many links it has.
    pub(crate) fn on_length(
        &mut self,
        from: Incarnation,
        version: u64,
        purpose: Purpose,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.knows_ground(), "what is accepted follows a link that is known");
        let mine = self.state.version();
        if let Purpose::Reply(question) = purpose {
            self.on_newcomer(from.node, question);
            self.on_reply(from.node, version, question, cx);
        }
        invariant!(self.state.version() == mine, "to hear a length brings no link");
        if version < mine {
            return self.tell(from, version, cx);
        }
        // What this node has accepted may be decided, and its proposer may have been told so.
        let accepted = self.state.stored.acceptor.accepted();
        let is_sure = accepted.is_none() || mutant!("confirms_what_is_open");
        if let Purpose::Ask(question) = purpose
            && is_sure
        {
            let purpose = Purpose::Reply(question);
            cx.fx.send(from, Message::Length { version: mine, purpose });
        } else if version > mine || matches!(purpose, Purpose::Ask(_)) {
            // It is there, at least.
            self.say_length(from, cx);
        }
    }

    /// Says how many links are known here; who has more sends them.
    pub(super) fn say_length(&self, to: Incarnation, cx: &mut Context<'_>) {
        let (version, purpose) = (self.state.version(), Purpose::News);
        cx.fx.send(to, Message::Length { version, purpose });
    }

    /// Sends what follows a link, or all there is if too much does.
    fn tell(&self, to: Incarnation, follows: u64, cx: &mut Context<'_>) {
        let stored = &self.state.stored;
        let Some(catalog) = &stored.catalog else { return };
        let is_kept = stored.entries.front().is_some_and(|(first, _)| *first <= follows + 1);
        if is_kept && follows > 0 {
            let lacking = stored.entries.iter().filter(|(number, _)| *number > follows);
            let entries = lacking.map(|(_, entry)| entry.clone()).collect();
            cx.fx.send(to, Message::Entries { follows, entries });
        } else {
            let catalog = Arc::clone(catalog);
            cx.fx.send(to, Message::Snapshot { catalog });
        }
    }

    /// A peer tells what was decided to follow a link.
    pub(crate) fn on_entries(
        &mut self,
        from: Incarnation,
        follows: u64,
        entries: &[Entry],
        cx: &mut Context<'_>,
    ) {
        if follows > self.state.version() {
            probe!("catalog/gap");
            return self.say_length(from, cx);
        }
        let before = self.state.version();
        let origins = self.append(follows, entries, cx);
        let is_longer = self.state.version() > before;
        invariant!(is_longer != origins.is_empty(), "what is taken over makes the chain longer");
        invariant!(self.state.is_newest_kept(), "the newest link made the catalog");
        if !origins.is_empty() {
            let accepted = self.state.stored.acceptor.accepted();
            invariant!(accepted.is_none(), "what was accepted of an older link is void");
            self.announce(cx);
            self.on_new(Some(&origins), cx);
        }
    }

    /// A peer tells all there is.
    pub(crate) fn on_snapshot(&mut self, catalog: &Arc<Catalog>, cx: &mut Context<'_>) {
        if catalog.version() <= self.state.version() {
            return;
        }
        probe!("catalog/snapshot");
        self.state.snapshots += 1;
        let stored = &mut self.state.stored;
        for (number, _) in stored.entries.drain(..) {
            cx.fx.delete_state(keys::decree(number));
        }
        stored.catalog = Some(Arc::clone(catalog));
        invariant!(self.state.version() == catalog.version(), "what is taken over is known");
        invariant!(self.state.is_newest_kept(), "no link of before is kept beside it");
        self.store(cx);
        self.announce(cx);
        self.on_new(None, cx);
    }

    /// Takes over links that follow one this node has, as far as they are new; answers who wanted
    /// the new ones.
    pub(crate) fn append(
        &mut self,
        follows: u64,
        entries: &[Entry],
        cx: &mut Context<'_>,
    ) -> BTreeSet<Origin> {
        let mut origins = BTreeSet::new();
        let stored = &mut self.state.stored;
        // Before any is taken: a list that contradicts what is decided is refused whole.
        let is_other = |(number, entry): (u64, &Entry)| {
            stored.entries.iter().any(|(known, own)| *known == number && own != entry)
        };
        if (follows.saturating_add(1)..u64::MAX).zip(entries).any(is_other) {
            cx.fx.refuse("two decrees have one number");
            return origins;
        }
        for (number, entry) in (follows.saturating_add(1)..u64::MAX).zip(entries) {
            let Some(catalog) = &stored.catalog else { break };
            if number <= catalog.version() {
                continue;
            }
            if !entry.fits(catalog) {
                // No correct peer sends it.
                probe!("catalog/nonsense");
                cx.fx.refuse("a decree does not fit the catalog");
                break;
            }
            stored.catalog = Some(Arc::new(catalog.after(entry)));
            cx.fx.put_state(keys::decree(number), keys::value(entry));
            stored.entries.push_back((number, entry.clone()));
            if stored.entries.len() > DECREES_KEPT
                && let Some((old, _)) = stored.entries.pop_front()
            {
                cx.fx.delete_state(keys::decree(old));
            }
            origins.insert(entry.origin);
        }
        // Without a new link the acceptor must stay as it is: it has promised.
        if !origins.is_empty() {
            self.store(cx);
        }
        origins
    }

    /// Stores the catalog with all that must change in one step with it.
    pub(crate) fn store(&mut self, cx: &mut Context<'_>) {
        let stored = &mut self.state.stored;
        let Some(catalog) = &stored.catalog else { return };
        cx.fx.put_state(keys::CATALOG, keys::value(catalog));
        // What follows the new link is another question than what followed the old one.
        stored.acceptor = Acceptor::default();
        cx.fx.put_state(keys::ACCEPTOR, keys::value(&stored.acceptor));
        for keyspace in catalog.keyspaces() {
            stored.opened.entry(keyspace.lane).or_insert(cx.me.start);
        }
        cx.fx.put_state(keys::OPENED, keys::value(&stored.opened));
        self.state.periods_accepted = 0;
    }

    /// What comes after a change of the catalog: the wish in hand was fulfilled, or begins anew.
    fn on_new(&mut self, origins: Option<&BTreeSet<Origin>>, cx: &mut Context<'_>) {
        if let Some(mut running) = self.state.running.take() {
            match origins {
                Some(origins) if origins.contains(&running.wish.origin) => {
                    self.fulfil(&running.wish, cx);
                }
                // What was decided says nothing of who is there.
                _ if matches!(running.doing, Doing::Muster { .. }) && !mutant!("musters_anew") => {
                    self.state.running = Some(running);
                }
                // Who wanted what was jumped over is not known here.
                None if running.wish.is_sent => self.leave_open(&running.wish, cx),
                _ => {
                    probe!("catalog/outrun");
                    running.wish.is_sent = false;
                    running.wish.is_confirmed = false;
                    // What was accepted where something else was decided is void.
                    if !matches!(running.wish.want, Want::Complete(_)) {
                        self.state.waiting.push_front(running.wish);
                    }
                }
            }
        }
        self.proceed(cx);
    }

    /// All other hosts that have not left, as far as is known.
    pub(crate) fn others(&self, me: NodeId) -> Vec<NodeId> {
        self.state.ring.others(me).collect()
    }
}
