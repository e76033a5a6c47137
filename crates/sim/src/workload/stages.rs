//! What becomes of all clients at once: hosts come and go, everything is lost, stages follow each
//! other.

use super::Workload;
use crate::queue::{Event, HostIndex, Queue};
use crate::trace::Trace;
use quorate_kernel::time::Time;

/// How much more time an operation gets that must succeed.
const DEMAND_TIMES: u64 = 12;

/// What clients must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Anything may fail.
    Free,
    /// Every operation begun must succeed.
    Demand,
    /// The same, and every key is read.
    Final,
    /// Every client has finished.
    Over,
}

impl Workload {
    /// A host accepts connections from now on.
    pub fn on_host_started(&mut self, host: HostIndex) {
        self.open[host] = true;
    }

    /// A host's process has ended: its connections break.
    pub fn on_host_stopped(
        &mut self,
        host: HostIndex,
        now: u64,
        queue: &mut Queue,
        trace: &mut Trace,
    ) {
        self.open[host] = false;
        for client in 0..self.clients.len() {
            if self.clients[client].host == Some(host) {
                self.abandon(client, now, queue, trace);
            }
        }
    }

    /// How long an operation begun now may take, in milliseconds.
    pub fn deadline_ms(&self) -> u64 {
        self.section.deadline_ms
    }

    /// From now on only these hosts are asked.
    pub fn restrict(&mut self, usable: &[bool], now: u64, queue: &mut Queue, trace: &mut Trace) {
        self.usable.copy_from_slice(usable);
        for client in 0..self.clients.len() {
            if self.clients[client].host.is_some_and(|host| !usable[host]) {
                self.abandon(client, now, queue, trace);
            }
        }
    }

    /// Everything was lost, and with it every connection: a history of its own begins.
    pub fn begin_epoch(&mut self) {
        assert!(self.clients.iter().all(|client| client.open == 0), "every connection is broken");
        self.clients.iter_mut().for_each(|client| client.scan = None);
        self.past.push(std::mem::take(&mut self.recorder).into_history());
    }

    /// What was acknowledged from this time on may be lost. What was there before is the beginning
    /// of a history that goes on, and the one up to now is judged as it is.
    pub fn lose(&mut self, since: Time) {
        self.past.push(self.recorder.lose(since));
    }

    /// Every operation begun from now on must succeed. It gets more time than during the faults: in
    /// some seeds a single sync takes most of a second.
    pub fn demand(&mut self, now: u64, queue: &mut Queue) {
        self.section.deadline_ms *= DEMAND_TIMES;
        self.section.patience_ms *= DEMAND_TIMES;
        self.recorder.heal(Time(now));
        self.begin_stage(Stage::Demand, now, queue);
    }

    fn begin_stage(&mut self, stage: Stage, now: u64, queue: &mut Queue) {
        self.stage = stage;
        self.done.fill(false);
        for client in &mut self.clients {
            client.left = self.demanded;
            client.scan = None;
            if client.open == 0 {
                // Leaving also voids the end of its think time.
                client.disconnect();
                let (client, connection) = (client.index, client.connection);
                queue.push(now, Event::Client { client, connection });
            }
        }
    }

    /// A client has done all that its stage asks; the last one begins the next.
    pub(super) fn finish_stage(&mut self, index: usize, now: u64, queue: &mut Queue) {
        self.done[index] = true;
        if self.done.contains(&false) {
            return;
        }
        match self.stage {
            Stage::Free => {}
            Stage::Demand => self.begin_stage(Stage::Final, now, queue),
            Stage::Final | Stage::Over => self.stage = Stage::Over,
        }
    }
}
