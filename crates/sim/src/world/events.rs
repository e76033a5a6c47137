//! The event loop.

use super::{WATCH_NS, World};
use crate::queue::Event;

impl World<'_> {
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Frame { host, .. }
            | Event::Turn { host, .. }
            | Event::Wake { host, .. }
            | Event::Written { host, .. }
            | Event::Synced { host, .. }
            | Event::Interval { host, .. } => {
                self.at_host(event);
                self.maintain_closing(host);
            }
            Event::Client { client, connection } => {
                self.machines.event(48, client as u64 | u64::from(connection) << 16);
                let tenant = self.tenants.iter_mut().find(|tenant| tenant.clients.has(client));
                let tenant = tenant.expect("every client is somebody's");
                tenant.clients.on_client(client, connection, &mut self.machines.scene());
                self.settle();
            }
            Event::Patience { client } => {
                self.machines.event(49, client as u64);
                let tenant = self.tenants.iter_mut().find(|tenant| tenant.clients.has(client));
                let tenant = tenant.expect("every client is somebody's");
                tenant.clients.on_patience(client, &mut self.machines.scene());
            }
            Event::FaultBegins(index) => self.begin_fault(index),
            Event::FaultEnds(index) => self.end_fault(index),
            Event::Join(host) => {
                self.machines.event(80, host as u64);
                self.join(host);
            }
            Event::Watch => {
                self.machines.event(96, 0);
                self.watch();
                self.change_keyspaces();
                self.machines.after(WATCH_NS, Event::Watch);
            }
            Event::Survey => {
                self.machines.event(97, 0);
                self.survey();
            }
            Event::Look => {
                self.machines.event(95, 0);
                self.look();
            }
            Event::Heal => self.heal(),
            Event::Demand => {
                self.phase("demand");
                for tenant in &mut self.tenants {
                    tenant.clients.demand(&mut self.machines.scene());
                }
                self.machines.after(0, Event::Look);
            }
            Event::TooLate => self.too_late(),
        }
    }
}
