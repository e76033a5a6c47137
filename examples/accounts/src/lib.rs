//! Bank accounts over partitions: an example of a machine that somebody writes for
//! [`quorate_protocols::smr::partitioned`].
//!
//! This file is all that a machine needs. [How a machine is written](../../../docs/eyrie.md) goes
//! through it. `tests/by_hand.rs` drives two replicas step by step; `tests/simulated.rs` runs whole
//! clusters of them, with all faults, and judges what clients see.

use bytes::Bytes;
use quorate_protocols::smr::partitioned::{
    Bucket, Execution, Machine, Partitions, Placement, Wait,
};
use serde::{Deserialize, Serialize};

/// The most accounts of one command.
pub const ACCOUNTS_MAX: usize = 64;

/// The key of the limit: no account has one so short.
const LIMIT: Bytes = Bytes::from_static(b"l");

/// An account. Each number is one, with nothing in it before the first deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountId(pub u32);

/// What is asked. Amounts and balances are in the smallest unit of the currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Puts money into an account.
    Deposit {
        /// Which one.
        account: AccountId,
        /// How much; not 0.
        amount: u64,
    },
    /// Moves money from one account to another, if the first one has it.
    Transfer {
        /// Which one has less then.
        from: AccountId,
        /// Which one has more; not the same.
        to: AccountId,
        /// How much; not 0.
        amount: u64,
    },
    /// Reads accounts, all as they are at one moment.
    Read(Vec<AccountId>),
    /// Gives accounts to a branch of the bank, whichever had them.
    Assign {
        /// Which ones.
        accounts: Vec<AccountId>,
        /// To which branch.
        branch: u64,
    },
    /// From now on no account gets more than this.
    Limit(u64),
    /// Reads which branches have accounts, all as they are at one moment.
    Branches(Vec<AccountId>),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// What is in the account after a deposit.
    Deposited(u64),
    /// What is in both accounts after a transfer.
    Transferred {
        /// In the one that money was taken from.
        from: u64,
        /// In the other one.
        to: u64,
    },
    /// Nothing was changed: the account that money was to be taken from has less than that, or the
    /// one that was to get it may not have so much.
    Refused,
    /// What is in each account, in the order of the question.
    Balances(Vec<u64>),
    /// The accounts are that branch's.
    Assigned,
    /// That is the limit now.
    Limited,
    /// The branch of each account, in the order of the question; 0 if none was said.
    Branches(Vec<u64>),
}

/// The machine. Its objects are balances and branches, each under a key of its own, so that a
/// command brings no more than it reads, and the limit, which all partitions hold, as many commands
/// read it and few write it. What is 0 is no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounts {}

impl AccountId {
    /// The key of its balance.
    #[must_use]
    pub fn balance(self) -> Bytes {
        self.key(b'm')
    }

    /// The key of its branch.
    #[must_use]
    pub fn branch(self) -> Bytes {
        self.key(b'b')
    }

    /// The bucket of all of it.
    #[must_use]
    pub fn bucket(self) -> Bucket {
        // The last byte of the number is enough to spread accounts evenly.
        Bucket(u16::from(self.0.to_be_bytes()[3]))
    }

    /// The number in front: all of an account is of one partition.
    fn key(self, kind: u8) -> Bytes {
        let [a, b, c, d] = self.0.to_be_bytes();
        Bytes::copy_from_slice(&[a, b, c, d, kind])
    }
}

impl Command {
    /// The accounts that it reads or changes.
    fn accounts(&self) -> impl Iterator<Item = AccountId> {
        let (one, other, more): (_, _, &[AccountId]) = match self {
            Command::Deposit { account, .. } => (Some(*account), None, &[]),
            Command::Transfer { from, to, .. } => (Some(*from), Some(*to), &[]),
            Command::Read(accounts)
            | Command::Branches(accounts)
            | Command::Assign { accounts, .. } => (None, None, accounts),
            Command::Limit(_) => (None, None, &[]),
        };
        one.into_iter().chain(other).chain(more.iter().copied())
    }
}

fn number(key: &Bytes, on: &mut Execution<'_, Accounts>) -> Result<u64, Wait> {
    Ok(on.get(key)?.copied().unwrap_or_default())
}

fn set(key: Bytes, number: u64, on: &mut Execution<'_, Accounts>) -> Result<(), Wait> {
    if number == 0 { on.remove(key) } else { on.put(key, number) }
}

/// What an account has with so much more; none if that is too much.
fn more(
    account: AccountId,
    amount: u64,
    on: &mut Execution<'_, Accounts>,
) -> Result<Option<u64>, Wait> {
    let limit = on.get(&LIMIT)?.copied().unwrap_or(u64::MAX);
    let more = number(&account.balance(), on)?.checked_add(amount);
    Ok(more.filter(|more| *more <= limit))
}

fn numbers(
    keys: impl Iterator<Item = Bytes>,
    on: &mut Execution<'_, Accounts>,
) -> Result<Vec<u64>, Wait> {
    keys.map(|key| number(&key, on)).collect()
}

impl Machine for Accounts {
    type Command = Command;
    type Object = u64;
    type Output = Output;

    fn bucket(key: &[u8]) -> Option<Bucket> {
        let (number, _) = key.split_first_chunk()?;
        Some(AccountId(u32::from_be_bytes(*number)).bucket())
    }

    fn begin() -> impl Iterator<Item = (Bytes, u64)> {
        core::iter::empty()
    }

    fn destinations(command: &Command, placement: &Placement) -> Partitions {
        match command {
            Command::Limit(_) => placement.partitions(),
            _ => command.accounts().map(|account| placement.of(account.bucket())).collect(),
        }
    }

    fn early(command: &Command) -> Vec<Bytes> {
        match command {
            Command::Deposit { .. } | Command::Transfer { .. } | Command::Read(_) => {
                command.accounts().map(AccountId::balance).collect()
            }
            Command::Branches(_) => command.accounts().map(AccountId::branch).collect(),
            // What is written without being read need not be sent.
            Command::Assign { .. } | Command::Limit(_) => Vec::new(),
        }
    }

    fn execute(command: &Command, on: &mut Execution<'_, Accounts>) -> Result<Output, Wait> {
        match command {
            Command::Deposit { account, amount } => {
                let Some(after) = more(*account, *amount, on)? else { return Ok(Output::Refused) };
                set(account.balance(), after, on)?;
                Ok(Output::Deposited(after))
            }
            Command::Transfer { from, to, amount } => {
                let less = number(&from.balance(), on)?.checked_sub(*amount);
                let more = more(*to, *amount, on)?;
                let (Some(less), Some(more)) = (less, more) else { return Ok(Output::Refused) };
                set(from.balance(), less, on)?;
                set(to.balance(), more, on)?;
                Ok(Output::Transferred { from: less, to: more })
            }
            Command::Read(accounts) => {
                let keys = accounts.iter().map(|account| account.balance());
                Ok(Output::Balances(numbers(keys, on)?))
            }
            Command::Limit(limit) => {
                set(LIMIT, *limit, on)?;
                Ok(Output::Limited)
            }
            Command::Assign { accounts, branch } => {
                for account in accounts {
                    set(account.branch(), *branch, on)?;
                }
                Ok(Output::Assigned)
            }
            Command::Branches(accounts) => {
                let keys = accounts.iter().map(|account| account.branch());
                Ok(Output::Branches(numbers(keys, on)?))
            }
        }
    }

    fn bytes(_: &u64) -> usize {
        8
    }

    fn is_sound(command: &Command) -> bool {
        match command {
            Command::Deposit { amount, .. } => *amount > 0,
            Command::Transfer { from, to, amount } => *amount > 0 && from != to,
            Command::Read(accounts)
            | Command::Branches(accounts)
            | Command::Assign { accounts, .. } => (1..=ACCOUNTS_MAX).contains(&accounts.len()),
            Command::Limit(limit) => *limit > 0,
        }
    }
}
