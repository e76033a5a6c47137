//! A client at each host that follows what this tells of keyspaces and hosts, from the start of the
//! process to its end. What it is told must make sense one by one, and in the end be what there is.

use super::World;
use crate::host::{Host, Running};
use crate::queue::HostIndex;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::watch::{Change, Event, Watch};
use quorate_node::pump::Input;
use std::collections::BTreeMap;

/// Tickets of these clients: above those of all keyspaces, below those of surveys.
const OF_FOLLOWERS: u64 = 0xfffe;
const OF_SHIFT: u32 = 48;
/// Where a ticket has the life of the host, above its index.
const LIFE_SHIFT: u32 = 8;

/// What such a client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Follower {
    /// The engine of each keyspace.
    keyspaces: BTreeMap<String, String>,
    /// Whether each host is suspected.
    hosts: BTreeMap<NodeId, bool>,
    /// Whether it was told all that there was at first.
    is_current: bool,
}

impl Follower {
    /// Takes in what it is told. Returns whether that makes sense.
    fn hear(&mut self, event: Event) -> bool {
        match event {
            Event::Current => !std::mem::replace(&mut self.is_current, true),
            Event::Keyspace { change, name, engine } => self.hear_keyspace(change, name, engine),
            Event::Host { change, node, .. } => self.hear_host(change, node),
            Event::Session(_) => false,
        }
    }

    fn hear_keyspace(&mut self, change: Change, name: String, engine: String) -> bool {
        match change {
            Change::Present | Change::Created => {
                let is_first = change == Change::Present;
                is_first != self.is_current && self.keyspaces.insert(name, engine).is_none()
            }
            Change::Altered => self.keyspaces.get(&name) == Some(&engine),
            Change::Dropped => self.keyspaces.remove(&name) == Some(engine),
            _ => false,
        }
    }

    fn hear_host(&mut self, change: Change, node: NodeId) -> bool {
        match change {
            Change::Present | Change::Joined => {
                let is_first = change == Change::Present;
                is_first != self.is_current && self.hosts.insert(node, false).is_none()
            }
            Change::Leaving | Change::Stays | Change::Restarted => self.hosts.contains_key(&node),
            Change::Suspected | Change::Trusted => {
                let is_suspected = change == Change::Suspected;
                let known = self.hosts.get_mut(&node);
                known.is_some_and(|known| std::mem::replace(known, is_suspected) != is_suspected)
            }
            Change::Left => self.hosts.remove(&node).is_some(),
            Change::Created | Change::Altered | Change::Dropped => false,
        }
    }

    /// What of that which there is it does not know.
    fn lacks(&self, host: &Host, all: &[Host]) -> Option<String> {
        if !self.is_current {
            return Some("was told nothing".to_owned());
        }
        let told = host.told.iter().flat_map(|told| &told.list);
        let told = told.map(|(keyspace, _)| (keyspace.name.clone(), keyspace.engine.clone()));
        let keyspaces: BTreeMap<String, String> = told.collect();
        if keyspaces != self.keyspaces {
            return Some(format!("knows {:?} of {keyspaces:?}", self.keyspaces));
        }
        let mut members = all.iter().filter(|member| member.has_joined);
        let missed = members.find(|member| self.hosts.get(&member.node_id) != Some(&false));
        missed.map(|missed| format!("does not know that {} is up", missed.node_id))
    }
}

/// The host and the life in which a ticket was given to a client that follows.
pub(super) fn followed(ticket: Ticket) -> Option<(HostIndex, u32)> {
    let within = ticket.0 & ((1 << OF_SHIFT) - 1);
    let host = (within & ((1 << LIFE_SHIFT) - 1)) as HostIndex;
    (ticket.0 >> OF_SHIFT == OF_FOLLOWERS).then_some((host, (within >> LIFE_SHIFT) as u32))
}

impl World<'_> {
    /// A host has started: its client asks to be told what happens, if there is one.
    pub(super) fn follow(&mut self, host: HostIndex) {
        let Some(follower) = self.followers.get_mut(host) else { return };
        *follower = Follower::default();
        let target = &mut self.machines.hosts[host];
        let within = u64::from(target.life) << LIFE_SHIFT | host as u64;
        let ticket = Ticket(OF_FOLLOWERS << OF_SHIFT | within);
        target.receive(Input::Watch { lane: LaneId::EVENTS, ticket, watch: Watch::Cluster });
        self.machines.kick(host);
    }

    /// A host tells its client what has happened.
    pub(super) fn on_followed(&mut self, (host, life): (HostIndex, u32), outcome: Outcome) {
        if self.machines.hosts[host].life != life {
            return;
        }
        let Outcome::More(events) = outcome else {
            let message = format!("n{} ends what a client follows: {outcome:?}", host + 1);
            return self.machines.condemn("events", message);
        };
        self.machines.trace.note(events.len() as u64);
        for event in events {
            let told = format!("n{} tells of {} {:?}", host + 1, event.word(), event.fields());
            self.machines.line(format_args!("{told}"));
            if !self.followers[host].hear(event) {
                let message = format!("{told} to a client with {:?}", self.followers[host]);
                self.machines.condemn("events", message);
            }
        }
    }

    /// What some client that follows was not told yet.
    pub(super) fn untold(&self) -> Option<String> {
        let hosts = &self.machines.hosts;
        let up = |host: &Host| host.running == Running::Up && host.has_joined;
        let mut all = self.followers.iter().zip(hosts).enumerate();
        all.find_map(|(index, (follower, host))| {
            let lacks = up(host).then(|| follower.lacks(host, hosts)).flatten();
            lacks.map(|what| format!("who follows n{} {what}", index + 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(change: Change, name: &str) -> Event {
        Event::Keyspace { change, name: name.to_owned(), engine: "e".to_owned() }
    }

    fn host(change: Change) -> Event {
        Event::Host { change, node: NodeId(7), address: "n7".to_owned() }
    }

    fn told(events: Vec<Event>) -> Vec<bool> {
        let mut follower = Follower::default();
        events.into_iter().map(|event| follower.hear(event)).collect()
    }

    #[test]
    fn what_is_told_in_order_makes_sense() {
        let events = vec![
            keyspace(Change::Present, "a"),
            host(Change::Present),
            host(Change::Suspected),
            Event::Current,
            keyspace(Change::Created, "b"),
            keyspace(Change::Altered, "a"),
            keyspace(Change::Dropped, "a"),
            host(Change::Restarted),
            host(Change::Trusted),
            host(Change::Left),
            host(Change::Joined),
        ];
        assert!(told(events).iter().all(|makes_sense| *makes_sense));
    }

    #[test]
    fn what_contradicts_what_was_told_before_is_found() {
        for events in [
            vec![Event::Current, Event::Current],
            vec![keyspace(Change::Created, "a")],
            vec![Event::Current, keyspace(Change::Present, "a")],
            vec![keyspace(Change::Present, "a"), keyspace(Change::Present, "a")],
            vec![Event::Current, keyspace(Change::Altered, "a")],
            vec![Event::Current, keyspace(Change::Dropped, "a")],
            vec![Event::Current, host(Change::Suspected)],
            vec![Event::Current, host(Change::Joined), host(Change::Joined)],
            vec![Event::Current, host(Change::Joined), host(Change::Trusted)],
            vec![Event::Current, host(Change::Left)],
            vec![Event::Current, host(Change::Restarted)],
            vec![Event::Current, host(Change::Created)],
        ] {
            assert_eq!(told(events.clone()).last(), Some(&false), "{events:?}");
        }
    }

    #[test]
    fn a_ticket_names_the_host_and_its_life() {
        let ticket = Ticket(OF_FOLLOWERS << OF_SHIFT | 9 << LIFE_SHIFT | 4);
        assert_eq!(followed(ticket), Some((4, 9)));
        assert_eq!(followed(super::super::NOBODY), None);
        assert_eq!(followed(Ticket(5)), None);
    }
}
