//! Clients: at a steady rate one begins an update at a random node, which is a get and then, with
//! its context, a put or a delete.

use super::cluster::Cluster;
use super::machines::Plan;
use super::subject::Subject;
use super::watch::key_of;
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};

/// An update that a client waits for.
pub(super) struct Waiting {
    node: usize,
    key: u32,
    begun: u64,
    is_delete: bool,
    is_counted: bool,
}

impl<S: Subject> Cluster<S> {
    pub(super) fn begin_update(&mut self) {
        if !self.is_measuring {
            return;
        }
        let next = self.now() + self.gap.sample(&mut self.rng);
        self.plan(next, Plan::Update);
        let key = self.rng.below(u64::from(self.run.keys)) as u32;
        let node = self.at[self.rng.below(self.at.len() as u64) as usize];
        let is_delete = self.rng.below(100) < self.run.delete_percent;
        self.tickets += 1;
        let (begun, is_counted) = (self.now(), self.is_measuring);
        self.waiting.insert(self.tickets, Waiting { node, key, begun, is_delete, is_counted });
        let ask = Operation::get_all(key_of(key).into(), None);
        let at = self.now() + self.way();
        self.plan(at, Plan::Request { node, ticket: self.tickets, ask });
    }

    /// A node answers a client, which goes on.
    pub(super) fn answered(&mut self, ticket: u64, outcome: Outcome, at: u64) {
        let Some(waiting) = self.waiting.remove(&ticket) else {
            if let Outcome::Values { context, .. } = outcome {
                self.seen = Some(context);
            }
            return;
        };
        let back = at + self.way();
        match outcome {
            Outcome::Values { context, .. } => {
                let (node, number, is_delete) = (waiting.node, waiting.key, waiting.is_delete);
                let key = key_of(number).into();
                let is_live = &mut self.live[number as usize];
                self.live_count -= u64::from(*is_live && is_delete);
                self.live_count += u64::from(!*is_live && !is_delete);
                *is_live = !is_delete;
                let ask = match is_delete {
                    true => Operation::delete_over(key, context),
                    false => Operation::put_over(key, self.value(ticket), context, None),
                };
                self.waiting.insert(ticket, waiting);
                let at = back + self.way();
                self.plan(at, Plan::Request { node, ticket, ask });
            }
            Outcome::Written { .. } | Outcome::Deleted { .. } => {
                if waiting.is_counted {
                    self.latency.push((back - waiting.begun) / 1000);
                }
            }
            _ => {
                self.findings.refused += u64::from(waiting.is_counted);
            }
        }
    }

    pub(super) fn value(&self, number: u64) -> Bytes {
        let mut value = vec![b'.'; self.run.value_bytes];
        let mark = number.to_be_bytes();
        let length = value.len().min(mark.len());
        value[..length].copy_from_slice(&mark[..length]);
        value.into()
    }
}
