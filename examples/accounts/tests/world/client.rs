//! A client: some commands in hand, each sent again until it is answered.

use super::{ACCOUNTS, chance};
use crate::judge::{Ended, Seen};
use quorate_accounts::{AccountId, Accounts, Command};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use quorate_protocols::smr::partitioned::{Addressed, Answered, CommandId, Machine, Placement};
use std::collections::BTreeMap;

/// How many commands it has in hand at most.
const OPEN_MAX: usize = 2;
/// When it sends one again.
const AGAIN_MS: u64 = 80;

struct Open {
    addressed: Addressed<Accounts>,
    sent_ms: u64,
    /// Where in its history.
    at: usize,
}

pub struct Client {
    id: Incarnation,
    /// By which it addresses its commands.
    placement: Placement,
    /// Commands that were addressed by another one, and where in its history they are.
    again: Vec<(Command, usize)>,
    pub retries: u64,
    /// The number of its last command.
    last: u64,
    open: BTreeMap<u64, Open>,
    history: Vec<Seen>,
}

/// What a client asks, at random: most of it is of several accounts.
pub fn command(rng: &mut Rng) -> Command {
    let from = AccountId(rng.below(u64::from(ACCOUNTS)) as u32);
    let to = AccountId((from.0 + rng.between(1, u64::from(ACCOUNTS) - 1) as u32) % ACCOUNTS);
    match rng.below(13) {
        0 | 1 => Command::Deposit { account: from, amount: rng.between(1, 20) },
        2 => Command::Read(vec![from]),
        3 => Command::Read(vec![from, to]),
        4 => Command::Read((0..ACCOUNTS).map(AccountId).collect()),
        5 | 6 => Command::Assign { accounts: vec![from, to], branch: rng.between(1, 1 << 20) },
        7 => Command::Branches(vec![from]),
        8 => Command::Branches(vec![from, to]),
        9 => Command::Limit(rng.between(10, 100)),
        _ => Command::Transfer { from, to, amount: rng.between(1, 15) },
    }
}

impl Client {
    pub fn new(at: u64, placement: Placement) -> Client {
        let id = Incarnation { node: NodeId(1000 + at), start: Start(1) };
        let (open, history, again) = (BTreeMap::new(), Vec::new(), Vec::new());
        Client { id, placement, again, retries: 0, last: 0, open, history }
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.again.is_empty()
    }

    pub fn may_ask(&self) -> bool {
        self.open.len() + self.again.len() < OPEN_MAX
    }

    pub fn take_history(&mut self) -> Vec<Seen> {
        core::mem::take(&mut self.history)
    }

    pub fn asks(&mut self, command: Command, now_ms: u64, clock: u64) -> Addressed<Accounts> {
        self.history.push(Seen { command: command.clone(), asked: clock, ended: Ended::Unknown });
        self.addresses(command, self.history.len() - 1, now_ms)
    }

    fn addresses(&mut self, command: Command, at: usize, now_ms: u64) -> Addressed<Accounts> {
        let acked = self.acked();
        self.last += 1;
        let destinations = Accounts::destinations(&command, &self.placement);
        let (id, version) =
            (CommandId { client: self.id, number: self.last }, self.placement.version());
        let addressed = Addressed { id, acked, version, destinations, command };
        let open = Open { addressed: addressed.clone(), sent_ms: now_ms, at };
        self.open.insert(self.last, open);
        addressed
    }

    /// Addresses anew what did nothing, by a later placement if that is one.
    pub fn asks_again(&mut self, placement: &Placement, now_ms: u64) -> Vec<Addressed<Accounts>> {
        if placement.version() > self.placement.version() {
            self.placement = placement.clone();
        }
        let again = core::mem::take(&mut self.again);
        again.into_iter().map(|(command, at)| self.addresses(command, at, now_ms)).collect()
    }

    /// All commands before the first that is open are answered.
    fn acked(&self) -> u64 {
        self.open.keys().next().map_or(self.last, |first| first - 1)
    }

    pub fn hears(&mut self, id: CommandId, answer: &Answered<Accounts>, clock: u64) {
        if id.client != self.id {
            return;
        }
        let Some(open) = self.open.remove(&id.number) else { return };
        let command = open.addressed.command;
        match answer.clone() {
            Answered::Done(output) => {
                self.history[open.at].ended = Ended::Answered { at: clock, output };
            }
            Answered::Retry(_) => {
                self.retries += 1;
                self.again.push((command, open.at));
            }
            Answered::Outside(_) => panic!("the oracle left out a partition of {command:?}"),
        }
    }

    /// What it sends again.
    pub fn due(&mut self, now_ms: u64) -> Vec<Addressed<Accounts>> {
        let acked = self.acked();
        let due = self.open.values_mut().filter(|it| now_ms - it.sent_ms >= AGAIN_MS);
        due.map(|open| {
            open.sent_ms = now_ms;
            open.addressed.acked = acked;
            open.addressed.clone()
        })
        .collect()
    }

    /// It begins anew, and never learns what came of its commands; whether it had any.
    pub fn restarts(&mut self) -> bool {
        if self.id.start.0 > 2 || self.is_idle() {
            return false;
        }
        self.id.start.0 += 1;
        self.last = 0;
        self.open.clear();
        self.again.clear();
        true
    }
}

#[test]
fn what_clients_ask_is_sound() {
    let mut rng = Rng::new(1);
    let is_sound = |_| Accounts::is_sound(&command(&mut rng));
    assert!((0..1000).all(is_sound) && !chance(&mut Rng::new(1), u64::MAX));
}
