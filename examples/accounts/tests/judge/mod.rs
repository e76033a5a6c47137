//! Whether one bank with all accounts in one place could have answered the same: is the history of
//! all clients linearizable?

use quorate_accounts::{AccountId, Accounts, Command, Output};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_protocols::smr::partitioned::CommandId;
use quorate_protocols::testing::partitions;
use std::collections::{BTreeMap, HashSet};

type Seen = partitions::Seen<Accounts>;
type Ended = partitions::Ended<Accounts>;

/// All accounts in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bank {
    balances: BTreeMap<AccountId, u64>,
    branches: BTreeMap<AccountId, u64>,
    limit: Option<u64>,
}

/// How many orders are tried before the judge gives up, which is no pass.
const STEPS_MAX: usize = 2_000_000;

/// What one bank does, and answers.
pub fn execute(command: &Command, bank: &mut Bank) -> Output {
    let of = |account: &AccountId, numbers: &BTreeMap<AccountId, u64>| {
        numbers.get(account).copied().unwrap_or_default()
    };
    let Bank { balances, branches, limit } = bank;
    let is_too_much = |balance: u64| limit.is_some_and(|limit| balance > limit);
    match command {
        Command::Deposit { account, amount } => {
            let after = of(account, balances) + amount;
            if is_too_much(after) {
                return Output::Refused;
            }
            balances.insert(*account, after);
            Output::Deposited(after)
        }
        Command::Transfer { from, to, amount } => {
            let Some(less) = of(from, balances).checked_sub(*amount) else {
                return Output::Refused;
            };
            let more = of(to, balances) + amount;
            if is_too_much(more) {
                return Output::Refused;
            }
            balances.insert(*from, less);
            balances.insert(*to, more);
            Output::Transferred { from: less, to: more }
        }
        Command::Read(accounts) => {
            Output::Balances(accounts.iter().map(|account| of(account, balances)).collect())
        }
        Command::Limit(amount) => {
            *limit = Some(*amount);
            Output::Limited
        }
        Command::Assign { accounts, branch } => {
            branches.extend(accounts.iter().map(|account| (*account, *branch)));
            Output::Assigned
        }
        Command::Branches(accounts) => {
            Output::Branches(accounts.iter().map(|account| of(account, branches)).collect())
        }
    }
}

/// The search for an order (Wing and Gong): what may come next does, and what was found to lead
/// nowhere is not tried again.
struct Search<'a> {
    seen: &'a [Seen],
    placed: Vec<bool>,
    tried: HashSet<(Vec<bool>, Bank)>,
    steps: usize,
}

impl Search<'_> {
    /// When the first command that is not placed was answered: what is asked later comes behind.
    fn horizon(&self, first: usize) -> u64 {
        let left = (first..self.seen.len()).filter(|at| !self.placed[*at]);
        let ends = left.filter_map(|at| match self.seen[at].ended {
            Ended::Answered { at, .. } => Some(at),
            Ended::Unknown => None,
        });
        ends.min().unwrap_or(u64::MAX)
    }

    /// Whether all that was answered from here on has a place. All before `first` are placed.
    fn goes_on(&mut self, first: usize, bank: &Bank) -> bool {
        let first =
            (first..self.seen.len()).find(|at| !self.placed[*at]).unwrap_or(self.seen.len());
        let horizon = self.horizon(first);
        if horizon == u64::MAX {
            return true;
        }
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the judge cannot tell");
        if !self.tried.insert((self.placed[first..].to_vec(), bank.clone())) {
            return false;
        }
        // Those that are asked later are further behind.
        let may = (first..self.seen.len()).take_while(|at| self.seen[*at].asked < horizon);
        for at in may.filter(|at| !self.placed[*at]).collect::<Vec<_>>() {
            let mut after = bank.clone();
            let does = execute(&self.seen[at].command, &mut after);
            let fits = match &self.seen[at].ended {
                Ended::Answered { output, .. } => *output == does,
                Ended::Unknown => true,
            };
            if fits {
                self.placed[at] = true;
                if self.goes_on(first, &after) {
                    return true;
                }
                self.placed[at] = false;
            }
        }
        false
    }
}

/// Whether one order of all commands explains all answers, in which none comes before one that was
/// answered before it was asked.
pub fn is_linearizable(seen: &[Seen]) -> bool {
    let mut seen = seen.to_vec();
    seen.sort_by_key(|it| it.asked);
    let placed = vec![false; seen.len()];
    let mut search = Search { seen: &seen, placed, tried: HashSet::new(), steps: 0 };
    search.goes_on(0, &Bank::default())
}

fn seen(command: Command, asked: u64, answered: Option<(u64, Output)>) -> Seen {
    let answered = answered.map(|(at, output)| Ended::Answered { at, output });
    let client = Incarnation { node: NodeId(1), start: Start(1) };
    let id = CommandId { client, number: asked };
    Seen { id, command, asked, ended: answered.unwrap_or(Ended::Unknown) }
}

fn deposit(account: u32, amount: u64) -> Command {
    Command::Deposit { account: AccountId(account), amount }
}

fn transfer(amount: u64) -> Command {
    Command::Transfer { from: AccountId(1), to: AccountId(2), amount }
}

fn both() -> Command {
    Command::Read(vec![AccountId(1), AccountId(2)])
}

#[test]
fn what_overlaps_may_be_in_any_order_and_nothing_else() {
    let history = |asked, balances: [u64; 2]| {
        [
            seen(deposit(1, 5), 1, Some((2, Output::Deposited(5)))),
            seen(transfer(2), 3, Some((6, Output::Transferred { from: 3, to: 2 }))),
            seen(both(), asked, Some((asked + 1, Output::Balances(balances.to_vec())))),
        ]
    };
    assert!(is_linearizable(&history(4, [5, 0])) && is_linearizable(&history(4, [3, 2])));
    assert!(!is_linearizable(&history(4, [3, 0])) && !is_linearizable(&history(4, [5, 2])));
    assert!(!is_linearizable(&history(7, [5, 0])) && is_linearizable(&history(7, [3, 2])));
}

#[test]
fn what_is_unknown_is_executed_once_or_never() {
    let history = |balances: [u64; 2]| {
        [
            seen(deposit(1, 5), 1, Some((2, Output::Deposited(5)))),
            seen(transfer(2), 3, None),
            seen(both(), 4, Some((5, Output::Balances(balances.to_vec())))),
        ]
    };
    assert!(is_linearizable(&history([5, 0])) && is_linearizable(&history([3, 2])));
    assert!(!is_linearizable(&history([1, 4])));
}

#[test]
fn a_read_that_goes_back_is_seen() {
    let read = |asked, balance| {
        let output = Output::Balances(vec![balance]);
        seen(Command::Read(vec![AccountId(1)]), asked, Some((asked + 1, output)))
    };
    let deposit = seen(deposit(1, 5), 1, Some((9, Output::Deposited(5))));
    assert!(is_linearizable(&[deposit.clone(), read(2, 0), read(4, 5)]));
    assert!(!is_linearizable(&[deposit, read(2, 5), read(4, 0)]));
}
