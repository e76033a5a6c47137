//! Listings: of clients, page by page, and of every host in the end.

use super::shown::told;
use super::{Client, Open, Places};
use crate::queue::HostIndex;
use crate::workload::Demand;
use crate::workload::fleet::Fleet;
use bytes::Bytes;
use quorate_check::places::{History, Listing};
use quorate_kernel::operation::{Cursor, Operation, Outcome};

/// How many keys a page has, about: few, so that a listing has several pages.
const SCAN_LIMIT: u32 = 2;

/// A listing on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    from: Cursor,
    keys: Vec<Bytes>,
    begun: u64,
}

impl Walk {
    /// From the beginning.
    pub fn begin(now: u64) -> Walk {
        Walk { begun: now, ..Walk::default() }
    }

    fn ask(&self) -> Operation {
        Operation::Scan { from: self.from.clone(), limit: SCAN_LIMIT }
    }

    /// A page has come; what is left, or a listing that is noted.
    pub fn on_page(
        mut self,
        keys: Vec<Bytes>,
        next: Option<Cursor>,
        now: u64,
        history: &mut History,
    ) -> Option<Walk> {
        self.keys.extend(keys);
        match next {
            Some(next) => {
                self.from = next;
                Some(self)
            }
            None => {
                history.list(Listing { keys: self.keys, begun: self.begun, ended: now });
                None
            }
        }
    }
}

impl Client {
    /// Asks for the next page.
    pub(super) fn go_on_listing(&mut self, walk: Walk) -> Operation {
        let ask = walk.ask();
        self.open = Some(Open::List(walk));
        ask
    }
}

impl Places {
    /// Asks each of these hosts for all keys, where clients have listed any.
    pub(super) fn list_all(&mut self, hosts: Vec<HostIndex>, fleet: &mut Fleet) {
        self.last_walks.clear();
        let hosts = if self.section.scan > 0 { hosts } else { Vec::new() };
        for host in hosts {
            self.last_walks.push((host, Walk::default()));
            self.ask_last_page(self.last_walks.len() - 1, fleet);
        }
    }

    fn ask_last_page(&mut self, place: usize, fleet: &mut Fleet) {
        let (host, walk) = &self.last_walks[place];
        let number = (self.keys.len() + place) as u32;
        fleet.ask(*host, number, Demand::Operation(walk.ask()));
        *self.unanswered.as_mut().expect("hosts are asked") += 1;
    }

    /// A host has told a page in the end.
    pub(super) fn on_last_page(&mut self, place: usize, outcome: Outcome, fleet: &mut Fleet) {
        *self.unanswered.as_mut().expect("it was asked") -= 1;
        match outcome {
            Outcome::Page { keys, next } => {
                let walk = &mut self.last_walks[place].1;
                walk.keys.extend(keys);
                match next {
                    Some(next) => {
                        walk.from = next;
                        self.ask_last_page(place, fleet);
                    }
                    None => self.history.list_at_quiescence(std::mem::take(&mut walk.keys)),
                }
            }
            other => {
                let message = format!("a last listing was told {}", told(&other));
                fleet.failure.get_or_insert(message);
            }
        }
    }
}
