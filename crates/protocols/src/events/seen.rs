//! What a node has learnt last of keyspaces and hosts, and what is new against it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Keyspaces};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::watch::{Change, Event};

/// The keyspaces and hosts, each none while nothing is known of them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    keyspaces: Option<BTreeMap<LaneId, Arc<Keyspace>>>,
    hosts: Option<BTreeMap<NodeId, RingHost>>,
}

impl Seen {
    /// All that there is; none while not both are known.
    pub(super) fn present(&self) -> Option<Vec<Event>> {
        let (keyspaces, hosts) = (self.keyspaces.as_ref()?, self.hosts.as_ref()?);
        let mut events: Vec<Event> =
            keyspaces.values().map(|keyspace| of_keyspace(Change::Present, keyspace)).collect();
        let there = hosts.values().filter(|host| host.standing != Standing::Left);
        for host in there {
            events.push(of_host(Change::Present, host));
            events.extend(standing(Standing::Up, host));
            events.extend(suspicion(false, host));
        }
        events.push(Event::Current);
        Some(events)
    }

    /// The catalog has changed. What is new; all that there is if it was not known before.
    pub(super) fn on_keyspaces(&mut self, now: &Keyspaces) -> Vec<Event> {
        let list = now.list.iter().map(|(keyspace, _)| (keyspace.lane, Arc::clone(keyspace)));
        let before = self.keyspaces.replace(list.collect());
        let Some(before) = before else { return self.present().unwrap_or_default() };
        if self.hosts.is_none() {
            return Vec::new();
        }
        let now = self.keyspaces.as_ref().expect("they were just learnt");
        let gone = before.values().filter(|keyspace| !now.contains_key(&keyspace.lane));
        let mut events: Vec<Event> =
            gone.map(|keyspace| of_keyspace(Change::Dropped, keyspace)).collect();
        for keyspace in now.values() {
            match before.get(&keyspace.lane) {
                None => events.push(of_keyspace(Change::Created, keyspace)),
                Some(before) if before.settings != keyspace.settings => {
                    events.push(of_keyspace(Change::Altered, keyspace));
                }
                Some(_) => {}
            }
        }
        events
    }

    /// What the overlay believes has changed. What is new; all that there is if it was not known
    /// before.
    pub(super) fn on_ring(&mut self, now: &Ring) -> Vec<Event> {
        let list = now.hosts().iter().map(|host| (host.who.node, host.clone()));
        let before = self.hosts.replace(list.collect());
        let Some(before) = before else { return self.present().unwrap_or_default() };
        if self.keyspaces.is_none() {
            return Vec::new();
        }
        let mut events = Vec::new();
        for host in now.hosts() {
            // Of one that was told to have left there is nothing more to say.
            let before = before.get(&host.who.node);
            match before.filter(|before| before.standing != Standing::Left) {
                None if host.standing == Standing::Left => {}
                None => {
                    events.push(of_host(Change::Joined, host));
                    events.extend(standing(Standing::Up, host));
                    events.extend(suspicion(false, host));
                }
                Some(before) => {
                    if host.who.start > before.who.start {
                        events.push(of_host(Change::Restarted, host));
                    }
                    events.extend(standing(before.standing, host));
                    events.extend(suspicion(before.is_suspected, host));
                }
            }
        }
        events
    }
}

fn of_keyspace(change: Change, keyspace: &Keyspace) -> Event {
    let (name, engine): (String, String) = (keyspace.name.clone(), keyspace.engine.clone());
    Event::Keyspace { change, name, engine }
}

fn of_host(change: Change, host: &RingHost) -> Event {
    Event::Host { change, node: host.who.node, address: host.address.clone() }
}

/// What there is to say of a host that stood like this before.
fn standing(before: Standing, host: &RingHost) -> Option<Event> {
    let change = match host.standing {
        Standing::Up => Change::Stays,
        Standing::Leaving => Change::Leaving,
        Standing::Left => Change::Left,
    };
    (host.standing != before).then(|| of_host(change, host))
}

/// What there is to say of a host that was suspected before, or not. One that has left is not
/// looked after any more.
fn suspicion(before: bool, host: &RingHost) -> Option<Event> {
    let change = if host.is_suspected { Change::Suspected } else { Change::Trusted };
    let is_news = host.is_suspected != before && host.standing != Standing::Left;
    is_news.then(|| of_host(change, host))
}
