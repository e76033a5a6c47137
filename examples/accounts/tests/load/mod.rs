//! What clients ask of the bank.

use quorate_accounts::{AccountId, Accounts, Command};
use quorate_kernel::rng::Rng;
use quorate_protocols::smr::partitioned::{Bucket, Machine};
use quorate_protocols::testing::partitions::Load;

/// Accounts of the bank.
pub const ACCOUNTS: u32 = 5;

/// Commands at random: most of it is of several accounts.
pub struct Bank;

impl Load<Accounts> for Bank {
    fn asks(&mut self, _client: usize, _now_ms: u64, rng: &mut Rng) -> Command {
        let from = AccountId(rng.below(u64::from(ACCOUNTS)) as u32);
        let to = AccountId((from.0 + rng.between(1, u64::from(ACCOUNTS) - 1) as u32) % ACCOUNTS);
        match rng.below(13) {
            0 | 1 => Command::Deposit { account: from, amount: rng.between(1, 20) },
            2 => Command::Read(vec![from]),
            3 => Command::Read(vec![from, to]),
            4 => self.last(0),
            5 | 6 => Command::Assign { accounts: vec![from, to], branch: rng.between(1, 1 << 20) },
            7 => Command::Branches(vec![from]),
            8 => Command::Branches(vec![from, to]),
            9 => Command::Limit(rng.between(10, 100)),
            _ => Command::Transfer { from, to, amount: rng.between(1, 15) },
        }
    }

    fn last(&mut self, _now_ms: u64) -> Command {
        Command::Read((0..ACCOUNTS).map(AccountId).collect())
    }

    fn buckets(&self) -> Vec<Bucket> {
        (0..ACCOUNTS as u16).map(Bucket).collect()
    }
}

#[test]
fn what_clients_ask_is_sound() {
    let mut rng = Rng::new(1);
    assert!((0..1000).all(|_| Accounts::is_sound(&Bank.asks(0, 0, &mut rng))));
}
