//! Where tokens should be when the load is uneven.
//!
//! Pure functions over what gossip tells; CATS §3 moves virtual nodes by such statistics.

use crate::gossip::record::HostRecord;
use alloc::vec::Vec;
use quorate_kernel::limits::TOKENS_PER_HOST_MAX;
use quorate_kernel::ring::Standing;

/// One change of a host's own tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMove {
    /// Take a further position.
    Add {
        /// Where.
        at: u64,
    },
    /// Give a position up.
    Remove {
        /// Which.
        token: u64,
    },
    /// Give one position up for another.
    Move {
        /// Which.
        from: u64,
        /// Where to.
        to: u64,
    },
}

impl TokenMove {
    /// The tokens after the change, ascending.
    #[must_use]
    pub fn apply(&self, tokens: &[u64]) -> Vec<u64> {
        let (added, removed) = match *self {
            TokenMove::Add { at } => (Some(at), None),
            TokenMove::Remove { token } => (None, Some(token)),
            TokenMove::Move { from, to } => (Some(to), Some(from)),
        };
        let kept = tokens.iter().copied().filter(|token| Some(*token) != removed);
        let mut tokens: Vec<u64> = kept.chain(added).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}

/// The least mean load at which moving anything is worth it: 16 MiB, or 100 operations a second.
const BYTES_MIN: u64 = 16 << 20;
const OPERATIONS_MIN: u64 = 100;

/// How a host's load stands to the mean, with a wide band in which nothing is done: a move that was
/// right once is not undone by the next look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    Low,
    Fair,
    High,
}

fn share(own: u64, total: u64, hosts: u64, least: u64) -> Share {
    let mean = total / hosts;
    if mean < least {
        return Share::Fair;
    }
    match () {
        () if 2 * own > 3 * mean => Share::High,
        () if 2 * own < mean => Share::Low,
        () => Share::Fair,
    }
}

/// What a host should do about its own tokens, given all hosts that take part. Bytes count first,
/// then operations. It never gives up its last token; called once a minute, it makes one change a
/// minute.
#[must_use]
pub fn decide(own: &HostRecord, all: &[&HostRecord]) -> Option<TokenMove> {
    if own.standing != Standing::Up || own.tokens.is_empty() || all.len() < 2 {
        return None;
    }
    let hosts = all.len() as u64;
    let bytes = all.iter().fold(0_u64, |sum, host| sum.saturating_add(host.load.bytes));
    let operations: u64 = all.iter().map(|host| u64::from(host.load.operations)).sum();
    let share = match share(own.load.bytes, bytes, hosts, BYTES_MIN) {
        Share::Fair => share(own.load.operations.into(), operations, hosts, OPERATIONS_MIN),
        uneven => uneven,
    };
    match share {
        Share::Fair => None,
        Share::High if own.tokens.len() > 1 => {
            let token = largest_own(own, all)?;
            Some(TokenMove::Remove { token })
        }
        // With one token the host narrows its range: the position moves back towards its
        // predecessor, by half.
        Share::High => {
            let from = own.tokens[0];
            let before = predecessor(from, all)?;
            let to = before.wrapping_add(from.wrapping_sub(before) / 2);
            (to != before && to != from).then_some(TokenMove::Move { from, to })
        }
        Share::Low => relieve(own, all),
    }
}

/// A position that takes half of a range of the busiest host.
fn relieve(own: &HostRecord, all: &[&HostRecord]) -> Option<TokenMove> {
    let weight = |host: &&&HostRecord| (host.load.bytes, host.load.operations, host.who.node);
    let busiest = all.iter().filter(|host| host.who.node != own.who.node).max_by_key(weight)?;
    let token = largest_own(busiest, all)?;
    let before = predecessor(token, all)?;
    let at = before.wrapping_add(token.wrapping_sub(before) / 2);
    if at == before || at == token {
        return None;
    }
    if own.tokens.len() < TOKENS_PER_HOST_MAX {
        return Some(TokenMove::Add { at });
    }
    let from = smallest_own(own, all)?;
    Some(TokenMove::Move { from, to: at })
}

fn predecessor(token: u64, all: &[&HostRecord]) -> Option<u64> {
    let tokens = all.iter().flat_map(|host| host.tokens.iter().copied());
    let others = tokens.filter(|other| *other != token);
    others.min_by_key(|other| token.wrapping_sub(*other))
}

fn width(token: u64, all: &[&HostRecord]) -> u64 {
    predecessor(token, all).map_or(u64::MAX, |before| token.wrapping_sub(before))
}

fn largest_own(host: &HostRecord, all: &[&HostRecord]) -> Option<u64> {
    host.tokens.iter().copied().max_by_key(|token| (width(*token, all), *token))
}

fn smallest_own(host: &HostRecord, all: &[&HostRecord]) -> Option<u64> {
    host.tokens.iter().copied().min_by_key(|token| (width(*token, all), *token))
}
