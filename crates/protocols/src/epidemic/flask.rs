//! Requests without order: from node to node to the slice of their key, and there to everybody.

use super::message::{Came, Flask, FlaskAct, HOPS_MAX, Message};
use super::replica::range::position;
use super::replica::store::{Put, Record};
use super::replica::version::Version;
use super::{Context, Epidemic, Level};
use crate::slices::position::Position;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::{invariant, mutant, probe};

/// How many requests a node remembers to have passed on.
const PASSED_MAX: usize = 16_384;
/// How many neighbours a request goes to for which no member of its slice is known: twice as many
/// each time it is sent again.
const FEW: usize = 4;

/// A request on its way, by its entry and the number that it has there. The name that its client
/// has given it will not do: what was lost on its way is sent again under it, by this entry or by
/// another one.
type Try = (Incarnation, u64);

/// Which requests went through here.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    known: BTreeSet<Try>,
    order: VecDeque<Try>,
}

impl Passed {
    /// Notes one; returns whether it is the first time.
    pub fn note(&mut self, name: Try) -> bool {
        if !self.known.insert(name) {
            return false;
        }
        self.order.push_back(name);
        while self.order.len() > PASSED_MAX {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.known.remove(&oldest));
        }
        true
    }
}

impl Epidemic {
    /// A request without order arrives.
    pub(super) fn on_flask(&mut self, from: Incarnation, flask: Flask, cx: &mut Context<'_>) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        invariant!(flask.hops <= HOPS_MAX, "nothing travels for ever");
        let is_write = matches!(flask.act, FlaskAct::Put(..));
        if is_write && self.settings.level != Level::None {
            return cx.fx.refuse("a write without order");
        }
        self.pass(from, flask, cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// Does a request without order if it is this slice's, and passes it on, once.
    pub(super) fn pass(&mut self, from: Incarnation, flask: Flask, cx: &mut Context<'_>) {
        let mut name = (flask.entry, flask.number);
        if mutant!("epidemic_try_named_by_its_write") {
            name = (Incarnation::default(), flask.id.0 as u64 ^ u64::from(flask.attempt) << 56);
        }
        if !self.state.passed.note(name) {
            return;
        }
        let at = position(&flask.key);
        let is_mine = self.state.is_mine(at);
        let to = if is_mine { self.members_for(from) } else { self.towards(at, from, &flask, cx) };
        let may_answer = self.state.is_ready(at) || mutant!("epidemic_joiner_answers");
        if is_mine && may_answer && self.is_as_far(&flask.act) {
            let came = self.perform_flask(&flask, cx);
            self.flush(cx);
            let members = self.state.told_size();
            cx.fx.send(flask.entry, Message::Flasked { id: flask.id, members, result: came });
        }
        if flask.hops < HOPS_MAX && !to.is_empty() {
            let flask = Flask { hops: flask.hops + 1, ..flask };
            // Whoever has done it says so itself.
            cx.fx.send_early(&Arc::from(to), Message::Flask(flask));
        }
    }

    /// Whether this node is as far in the order as the client was. If not it says nothing: the
    /// request comes again.
    pub(super) fn is_as_far(&self, act: &FlaskAct) -> bool {
        match act {
            FlaskAct::Get { after, .. } => {
                self.state.last >= *after || mutant!("epidemic_reads_behind_its_client")
            }
            FlaskAct::Put(..) => true,
        }
    }

    /// The first node of a slice that hears of it tells all members that it knows.
    fn members_for(&self, from: Incarnation) -> Vec<NodeId> {
        let is_from_outside = from == self.state.me || !self.state.is_mine(Position::of(from.node));
        let members = self.state.slices.members().iter().map(|peer| peer.who.node);
        members.filter(|node| is_from_outside && *node != from.node).collect()
    }

    /// Known members of another slice, or else a few neighbours. Each node that cannot do better
    /// passes it on, so all neighbours of all would hear of it.
    fn towards(
        &self,
        at: Position,
        from: Incarnation,
        flask: &Flask,
        cx: &mut Context<'_>,
    ) -> Vec<NodeId> {
        let neighbours = self.state.cyclon.view().iter().map(|peer| peer.who.node);
        let neighbours = neighbours.filter(|node| *node != from.node);
        let few = |cx: &mut Context<'_>| {
            let most = FEW << flask.attempt.min(4);
            self.state.cyclon.sample(most, cx.rng, |node| node != from.node)
        };
        let Some(groups) = self.state.slices.groups() else { return few(cx) };
        let slice = groups.slice(at);
        let is_there = |node: &NodeId| groups.slice(Position::of(*node)) == slice;
        let there: Vec<NodeId> = neighbours.filter(is_there).collect();
        if there.is_empty() {
            return few(cx);
        }
        probe!("epidemic/flask_aimed");
        there
    }

    fn perform_flask(&mut self, flask: &Flask, cx: &Context<'_>) -> Came {
        let state = &mut self.state;
        match &flask.act {
            FlaskAct::Get { version, .. } => {
                let version = version.map(Version::Explicit);
                let held = state.store.held(&flask.key, version).map(|held| held.version);
                let record = held.and_then(|it| state.store.record(&flask.key, it, cx.table));
                let value = record.and_then(|record| record.value);
                Came::Read { version: held, value, is_degraded: state.is_degraded(&flask.key) }
            }
            FlaskAct::Put(version, value) => {
                let (key, id) = (flask.key.clone(), flask.id);
                let existed = state.store.held(&key, None).is_some();
                let version = Version::Explicit(*version);
                let record = Record { key, version, id, value: Some(value.clone()) };
                match state.store.put(record, &mut state.writes) {
                    Put::Stored | Put::Known => Came::Wrote { version, existed },
                    Put::Older | Put::Conflict => {
                        state.counters.conflicts += 1;
                        probe!("epidemic/version_taken");
                        Came::Refused
                    }
                }
            }
        }
    }
}
