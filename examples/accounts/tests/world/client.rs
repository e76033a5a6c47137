//! A client: some commands in hand, each sent again until it is answered.

use super::{ACCOUNTS, chance};
use crate::judge::{Ended, Seen};
use quorate_accounts::{AccountId, Accounts, Command};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use quorate_protocols::smr::partitioned::{Addressed, Answered, CommandId, Machine};
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
    partitions: u8,
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
    pub fn new(at: u64, partitions: u8) -> Client {
        let id = Incarnation { node: NodeId(1000 + at), start: Start(1) };
        Client { id, partitions, last: 0, open: BTreeMap::new(), history: Vec::new() }
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub fn may_ask(&self) -> bool {
        self.open.len() < OPEN_MAX
    }

    pub fn take_history(&mut self) -> Vec<Seen> {
        core::mem::take(&mut self.history)
    }

    pub fn asks(&mut self, command: Command, now_ms: u64, clock: u64) -> Addressed<Accounts> {
        let acked = self.acked();
        self.last += 1;
        let destinations = Accounts::destinations(&command, self.partitions);
        let id = CommandId { client: self.id, number: self.last };
        let addressed = Addressed { id, acked, destinations, command: command.clone() };
        let open = Open { addressed: addressed.clone(), sent_ms: now_ms, at: self.history.len() };
        self.open.insert(self.last, open);
        self.history.push(Seen { command, asked: clock, ended: Ended::Unknown });
        addressed
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
        let Answered::Done(output) = answer.clone() else {
            panic!("the oracle left out a partition of {:?}", open.addressed.command)
        };
        self.history[open.at].ended = Ended::Answered { at: clock, output };
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
        if self.id.start.0 > 2 || self.open.is_empty() {
            return false;
        }
        self.id.start.0 += 1;
        self.last = 0;
        self.open.clear();
        true
    }
}

#[test]
fn what_clients_ask_is_sound() {
    let mut rng = Rng::new(1);
    let is_sound = |_| Accounts::is_sound(&command(&mut rng));
    assert!((0..1000).all(is_sound) && !chance(&mut Rng::new(1), u64::MAX));
}
