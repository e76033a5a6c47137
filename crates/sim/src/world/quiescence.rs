//! How it is told that all is quiet, and what must hold then.

use super::World;
use crate::host::Running;
use crate::queue::Event;

/// How often hosts are looked at while they come to rest.
const LOOK_NS: u64 = 250_000_000;

impl World<'_> {
    /// Whether all clients have done what was demanded of them.
    pub(super) fn are_finished(&self) -> bool {
        self.tenants.iter().all(|tenant| tenant.clients.fleet.is_finished())
    }

    /// Looks whether the clients have finished and the hosts have come to rest; then everything is
    /// asked that the promises of keyspaces demand at rest.
    pub(super) fn look(&mut self) {
        let all_run = self.machines.hosts.iter().all(|host| host.running == Running::Up);
        let is_finished = self.are_finished();
        if !self.is_whole || !all_run {
            // Some are cut off for good: nobody waits for rest.
            self.is_over = is_finished;
            return self.look_later();
        }
        self.watch_roll();
        let restless = self.unsettled().or_else(|| self.unlisted()).or_else(|| self.unbalanced());
        self.restless = restless.or_else(|| self.untold());
        if is_finished {
            self.restless = self.ask_all();
            if self.restless.is_none() {
                self.judge_balance();
                self.is_over = true;
            }
            self.settle();
        }
        self.look_later();
    }

    fn look_later(&mut self) {
        if !self.is_over {
            self.machines.after(LOOK_NS, Event::Look);
        }
    }

    /// Asks what is to be asked at rest; returns what keeps the run from its end.
    fn ask_all(&mut self) -> Option<String> {
        let unsettled = self.restless.take();
        let mut first = unsettled.clone();
        let lanes: Vec<_> = self.tenants.iter().map(super::Tenant::lane).collect();
        let known: Vec<_> = lanes.into_iter().map(|lane| self.known(lane)).collect();
        for (tenant, known) in self.tenants.iter_mut().zip(known) {
            let hosts = &self.machines.hosts;
            let ground = tenant.ground(hosts, known.as_deref(), unsettled.as_deref());
            let restless = tenant.clients.work.at_quiescence(&ground, &mut tenant.clients.fleet);
            first = first.or(restless);
        }
        first
    }

    /// What had to happen by now has not.
    pub(super) fn too_late(&mut self) {
        let waits = |tenant: &&super::Tenant<'_>| !tenant.clients.fleet.is_finished();
        let waiting = self.tenants.iter().find(waits);
        let what = match waiting {
            Some(tenant) => format!("lane {}: {}", tenant.lane().0, tenant.clients.waiting()),
            None => format!("not at rest: {}", self.restless.take().unwrap_or_default()),
        };
        let bound = self.prepared.scenario.liveness.bound_ms;
        self.machines.condemn("liveness", format!("not finished after {bound} ms: {what}"));
    }
}
