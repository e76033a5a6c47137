//! Sessions of clients: how they get one, go on with it, and lose it.

use super::client::Connection;
use super::{SESSION, Tree};
use crate::hosts::machines::Scene;
use crate::workload::Demand;
use crate::workload::fleet::{End, Fleet};
use quorate_check::history::{ClientId, Completion};
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Connect, SessionEvent};
use quorate_kernel::watch::{Event, Watch};

/// How long sessions want to be able to be silent, in milliseconds; hosts allow some of it.
const TIMEOUT_MS: (u64, u64) = (1000, 5000);

impl Tree {
    /// A client asks its host for its session: the one that it has, or a new one.
    pub(super) fn connect(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let name = fleet.name(index);
        fleet.begin(index, 1, false, scene);
        let seat = &mut fleet.seats[index];
        let (number, host) = (seat.connection, seat.host.expect("it is connected"));
        let timeout_ms = seat.rng.between(TIMEOUT_MS.0, TIMEOUT_MS.1) as u32;
        let client = &mut self.clients[index];
        let (session, seen) = (client.known, client.seen);
        scene.line(format_args!("{name} -> n{} wants {session:?}", host + 1));
        let connect = Connect { session, timeout_ms, seen, peer: None };
        self.watches += 1;
        let watch = SESSION + self.watches;
        let ticket = fleet.send(index, watch, Demand::Watch(Watch::Session(connect)));
        self.latest = Time(scene.now);
        let wanted = session.map(|(session, _)| session);
        let recorded = self.record.connect(ClientId(index as u32), wanted, self.latest);
        // Of a new session only the first client follows something from the beginning: all.
        let follows_all = index == 0;
        if follows_all {
            client.follows.all();
        }
        let lacks = session.is_some() || follows_all;
        let connection =
            Connection { number, host, ticket, watch, recorded, is_open: false, lacks };
        client.connection = Some(connection);
    }

    /// A client has no connection any more. Its host may be told.
    pub(super) fn leave(&mut self, index: usize, is_told: bool, fleet: &mut Fleet) {
        let Some(connection) = self.clients[index].connection.take() else { return };
        if is_told {
            fleet.unwatch(connection.host, connection.ticket);
        }
    }

    /// The host of a client's session tells something.
    pub(super) fn on_session(
        &mut self,
        index: usize,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        match outcome {
            Outcome::More(events) => {
                for event in events {
                    if let Event::Session(event) = event {
                        self.on_event(index, event, fleet, scene);
                    }
                }
            }
            other => self.on_end(index, &other, fleet, scene),
        }
    }

    fn on_event(
        &mut self,
        index: usize,
        event: SessionEvent,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let name = fleet.name(index);
        scene.line(format_args!("{name} is told {event:?}"));
        self.latest = Time(scene.now);
        let client = &mut self.clients[index];
        let Some(connection) = client.connection.as_mut() else { return };
        let recorded = connection.recorded;
        // A client that has no session any more has its answer, too.
        let is_told = match event {
            SessionEvent::Open { session, password, timeout_ms, .. } => {
                client.known = Some((session, password));
                self.record.opened(recorded, session, timeout_ms, self.latest);
                !std::mem::replace(&mut connection.is_open, true)
            }
            SessionEvent::Expired => {
                self.record.expired(recorded, self.latest);
                let is_told = !std::mem::replace(&mut connection.is_open, true);
                client.forget();
                is_told
            }
            SessionEvent::Changed(changed) => {
                client.on_changed(&changed);
                self.record.changed(recorded, changed, self.latest);
                false
            }
        };
        if is_told {
            fleet.end(index, End::Answered, &String::new);
        }
        if is_told && client.known.is_some() {
            fleet.go_on(index, 0, scene);
        }
    }

    /// The host ends the connection. The client looks for another one.
    fn on_end(
        &mut self,
        index: usize,
        outcome: &Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let name = fleet.name(index);
        scene.line(format_args!("{name} loses its connection: {outcome:?}"));
        if self.clients[index].is_opening() {
            fleet.end(index, End::Refused, &|| format!("{outcome:?} for its session"));
        }
        let numbers: Vec<u32> = self.clients[index].open.iter().map(|it| it.number).collect();
        for number in numbers {
            self.conclude(index, number, (Completion::Unknown, false), fleet, scene);
        }
        self.leave(index, false, fleet);
        fleet.disconnect(index);
        fleet.connect_later(index, scene);
    }
}
