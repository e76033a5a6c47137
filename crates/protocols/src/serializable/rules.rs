//! The engine as a value, and what a transaction may be: limits, and the shares of its groups.

use super::execute::act::{Act, WallMs};
use super::lane::{Settings, lane};
use super::message::{Commit, Refused};
use super::number::{Rank, Token, TxId, Version};
use super::raw::Raw;
use super::settings::{SETTINGS, is_any};
use crate::order::Order;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::engine::{Capability, Engine, Listing, Placement};
use quorate_kernel::ids::GroupId;
use quorate_kernel::limits::{
    GROUPS_MAX, KEY_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX,
    VALUE_BYTES_MAX as FRAME_VALUE_BYTES_MAX, VSR_IN_FLIGHT_BYTES_MAX,
};
use quorate_kernel::mutant;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "serializable",
    placement: Placement::Groups,
    can: &[
        Capability::Values,
        Capability::Listing,
        Capability::Transactions,
        Capability::Changes,
        Capability::Expiry,
    ],
    listing: Listing {
        is_complete: true,
        text: "a page shows what its group had at one moment after it was asked: a key that is \
               there throughout is listed; the listing as a whole is no snapshot, and each value \
               is read by itself",
    },
    quorum: |members| members / 2 + 1,
    token: |_, key| Order::Hash.token(key),
    mode: |settings| if is_any(settings) { "any replica" } else { "atomic" },
    open: |opening| Ok(lane(Settings::of(opening)?)),
    numbers: &["failed", "kept", "purged"],
    settings: SETTINGS,
};

/// The longest value of a put, with the longest key and what is written beside both.
pub(super) const VALUE_OF_PUT_BYTES_MAX: usize = BYTES_MAX - KEY_BYTES_MAX - 1024;
/// The most keys of one transaction.
pub const KEYS_MAX: usize = TRANSACTION_ITEMS_MAX;
/// The most acts of one transaction; several may be of one key.
pub const ACTS_MAX: usize = 4 * KEYS_MAX;
/// The most bytes of a transaction's keys and values together; also of the values that it leaves.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most bytes of values that are made while the acts of one transaction are done: what grows
/// and is put anew is made again.
pub const MADE_BYTES_MAX: usize = 2 * BYTES_MAX;
/// The most bytes of values that the keys of one transaction have before it; also of the values
/// that one read is answered. One value always fits.
pub const READ_BYTES_MAX: usize = TRANSACTION_BYTES_MAX;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = BYTES_MAX;
/// The longest key: its stored form, and the cursor behind it in a copy, fit those of the store.
pub const ITEM_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - 32;
/// The most transactions that one primary has in hand.
pub const IN_HAND_MAX: usize = 8192;
/// The most bytes that one primary has in hand before clients are refused; one more always fits.
/// As many again may be of reads: they wait for keys that others hold, and must not keep those from
/// being freed.
pub const IN_HAND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many transactions more one primary may have in hand of which other groups tell: clients that
/// ask for ever more do not keep those out.
pub const IN_HAND_TOLD_MAX: usize = IN_HAND_MAX / 8;
/// The same in bytes, with all that clients may fill: what they have asked for, and as many bytes
/// of entries that follow from it.
pub const IN_HAND_TOLD_BYTES_MAX: usize = 3 * IN_HAND_BYTES_MAX;
/// The most entries of one primary that wait to be committed; the log allows more.
pub const IN_FLIGHT_MAX: usize = 2048;
/// The most bytes of one primary's entries that wait to be committed, before no more are handed to
/// the log; one more always fits. Where the log is set to fewer it refuses some, which are handed
/// to it again.
pub const IN_FLIGHT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// About the most bytes of a group's head that are of transactions that have not ended everywhere,
/// before it votes on no more; one vote more always fits.
pub const UNENDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// About how many bytes more may be of decisions that others have not applied, before nothing is
/// decided but that time has run out; one decision more always fits.
pub const DECIDED_ROOM_BYTES: usize = 16 * 1024 * 1024;
/// About the most bytes of what one act answers: a number that is added to may have some hundred
/// digits.
pub const ANSWER_BYTES_MAX: usize = 512;
/// About the most bytes of a transaction's answers.
pub const ANSWERS_BYTES_MAX: usize = ACTS_MAX * ANSWER_BYTES_MAX;
/// About the most bytes of a group's vote: the keys that it holds, what it changes, its answers.
pub const VOTE_BYTES_MAX: usize = 2 * BYTES_MAX + ANSWERS_BYTES_MAX;
/// About the most bytes of a group's head that are of transactions that have not ended everywhere.
pub const UNENDED_ROOM_BYTES: usize = UNENDED_BYTES_MAX + VOTE_BYTES_MAX + DECIDED_ROOM_BYTES;
/// About the most bytes of a group's head that are of transactions that have ended, and of clients;
/// the oldest are dropped then.
pub const REMEMBERED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// About how many bytes more may be remembered until the oldest are dropped, before nothing begins
/// that would have to be; one transaction more always fits.
pub const REMEMBERED_ROOM_BYTES: usize = 8 * 1024 * 1024;
/// About how many bytes more may be remembered of what other groups tell of, and of decisions that
/// all of them have applied; and more not have ended, of what they tell of. Clients that ask for
/// ever more do not keep those out, who hold keys and room until they are heard.
pub const TOLD_ROOM_BYTES: usize = 4 * 1024 * 1024;
/// About the most bytes that are remembered of transactions whose counters are ahead of time, apart
/// from others: no horizon drops those. While there are more, no more such begin, and clients that
/// have counted furthest are dropped.
pub const AHEAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// About how many bytes more may be of such that have begun already, or that other groups tell of;
/// one transaction more always fits.
pub const AHEAD_ROOM_BYTES: usize = 4 * 1024 * 1024;
/// How far behind the clock a horizon stays: what is under way is no older, if its counter is of
/// the time when it began.
pub const HORIZON_LAG_MS: WallMs = 2 * super::timer::WAIT.0 / 1_000_000;
/// How far a clock that another primary has logged may be ahead of this one's. One that is further
/// ahead was wrong, and is believed so far.
pub const CLOCK_AHEAD_MAX_MS: WallMs = 60_000;
/// A counter may be as high as this many a millisecond since 1970 would have made it, and
/// [`COUNTER_AHEAD_MS`] ahead.
pub const COUNTERS_PER_MS: u64 = 1 << 20;
/// See [`COUNTERS_PER_MS`].
pub const COUNTER_AHEAD_MS: WallMs = 24 * 60 * 60 * 1000;
/// The most keys that one sweep looks at.
pub const SWEEP_KEYS_MAX: usize = 256;
/// The most transactions that one entry forgets; also the most that are given up, and the most
/// clients that are dropped, at a time.
pub const FORGET_MAX: usize = 256;

// What was let into a log is let in by all later releases (`entry.rs`): these only rise.
const _: () = assert!(ITEM_KEY_BYTES_MAX >= 65_248 && VALUE_BYTES_MAX >= 16 * 1024 * 1024);
const _: () = assert!(ACTS_MAX >= 4096 && ANSWER_BYTES_MAX >= 512);
const _: () = assert!(GROUPS_MAX >= 1024 && KEYS_MAX >= 1024);

const _: () = assert!((IN_FLIGHT_MAX as u64) < quorate_kernel::limits::VSR_IN_FLIGHT_MAX);
const _: () = assert!(IN_FLIGHT_BYTES_MAX <= VSR_IN_FLIGHT_BYTES_MAX);
const _: () = assert!(
    2 * IN_HAND_BYTES_MAX + BYTES_MAX + VOTE_BYTES_MAX < IN_HAND_TOLD_BYTES_MAX,
    "clients that have filled hands leave room for what other groups tell"
);
const _: () = assert!(READ_BYTES_MAX >= VALUE_BYTES_MAX);
/// About the most bytes of a group's head, which is one message and one value: of each bound, one
/// transaction's answers more than it.
const HEAD_BYTES_MAX: usize = UNENDED_ROOM_BYTES
    + REMEMBERED_BYTES_MAX
    + REMEMBERED_ROOM_BYTES
    + 2 * TOLD_ROOM_BYTES
    + AHEAD_BYTES_MAX
    + AHEAD_ROOM_BYTES
    + 3 * ANSWERS_BYTES_MAX;
// What is counted is an estimate: what is encoded may be twice as much.
const _: () = assert!(2 * HEAD_BYTES_MAX <= FRAME_VALUE_BYTES_MAX);

/// A whole transaction, as its client has gathered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its rank, and with that its name.
    pub rank: Rank,
    /// The client knows how all its transactions with lower counters have ended.
    pub mark: u64,
    /// The versions that it rests on.
    pub reads: BTreeMap<Raw, Version>,
    /// What it does, in order.
    pub acts: Vec<(Raw, Act)>,
    /// Whether an act that fails leaves the others be.
    pub goes_on: bool,
    /// The most bytes of a value that grows where it stands; no more than of any value.
    pub value_max: u64,
}

impl Transaction {
    /// The shares of the groups that it touches, each to be sent to that group's primary.
    ///
    /// # Errors
    /// It is more than a transaction may be; nothing was done.
    pub fn split(
        &self,
        group_of: impl Fn(&[u8]) -> GroupId,
    ) -> Result<Vec<(GroupId, Commit)>, Refused> {
        check(self.rank.tx, &self.reads, &self.acts)?;
        let keys = self.reads.keys().chain(self.acts.iter().map(|(key, _)| key));
        let groups: BTreeSet<GroupId> = keys.map(|key| group_of(key)).collect();
        let groups: Vec<GroupId> = groups.into_iter().collect();
        let share = |group: GroupId| Commit {
            rank: self.rank,
            mark: self.mark,
            groups: groups.clone(),
            reads: self
                .reads
                .iter()
                .filter(|(key, _)| group_of(key) == group)
                .map(|(key, version)| (key.clone(), *version))
                .collect(),
            acts: self.acts.iter().filter(|(key, _)| group_of(key) == group).cloned().collect(),
            goes_on: self.goes_on,
            value_max: self.value_max,
        };
        Ok(groups.iter().map(|group| (*group, share(*group))).collect())
    }
}

impl Commit {
    /// About how many bytes it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        let of_reads = self.reads.keys().map(|key| key.len() + 64).sum::<usize>();
        let of_acts = self.acts.iter().map(|(key, act)| key.len() + act.size() + 64).sum::<usize>();
        of_reads + of_acts + 16 * self.groups.len() + 128
    }

    /// Whether another share is the same: what a client that asks again may change is its mark.
    pub(super) fn is_same(&self, other: &Commit) -> bool {
        self.rank == other.rank
            && self.groups == other.groups
            && self.reads == other.reads
            && self.acts == other.acts
            && (self.goes_on, self.value_max) == (other.goes_on, other.value_max)
    }

    /// What is asked of this group, in short; but for the mark.
    pub(super) fn digest(&self) -> u64 {
        if mutant!("txn_digest_of_keys") {
            let keys: Vec<&Raw> = self.acts.iter().map(|(key, _)| key).collect();
            return digest_of(&(self.rank, &self.groups, &self.reads, keys));
        }
        let how = (self.goes_on, self.value_max);
        digest_of(&(self.rank, &self.groups, &self.reads, &self.acts, how))
    }

    /// What the client keeps to ask how the transaction ended.
    #[must_use]
    pub fn token(&self) -> Token {
        Token { tx: self.rank.tx, coordinator: self.groups[0] }
    }
}

fn digest_of(asked: &impl Serialize) -> u64 {
    xxh3_64(&postcard::to_allocvec(asked).expect("plain data always serializes"))
}

/// The counter that a client would begin with now, by this clock.
#[must_use]
pub fn counter_of(clock: WallMs) -> u64 {
    clock.saturating_mul(COUNTERS_PER_MS)
}

/// Whether a client can have counted so far. Counters are compared over all clients, and each goes
/// on above the highest that it sees: a single one near the end of all numbers would end them for
/// everybody. So none may be further than time allows, with a day for clocks that differ. Whoever
/// goes to that bound leaves room for the others, which rises with time.
///
/// # Errors
/// It cannot; nothing was done.
pub fn check_counter(tx: TxId, clock: WallMs) -> Result<(), Refused> {
    let counter_max = counter_of(clock.saturating_add(COUNTER_AHEAD_MS)).min(u64::MAX - 1);
    let counter = tx.counter;
    match counter {
        0 => Err(Refused::Empty),
        _ if counter > counter_max && !mutant!("txn_any_counter") => {
            Err(Refused::Counter { counter, counter_max })
        }
        _ => Ok(()),
    }
}

/// Whether a transaction, or a share of one, is within the limits.
///
/// # Errors
/// It is not; nothing was done.
pub fn check(tx: TxId, reads: &BTreeMap<Raw, Version>, acts: &[(Raw, Act)]) -> Result<(), Refused> {
    let keys: BTreeSet<&Raw> = reads.keys().chain(acts.iter().map(|(key, _)| key)).collect();
    if keys.is_empty() || tx.counter == 0 {
        return Err(Refused::Empty);
    }
    if keys.len() > KEYS_MAX || acts.len() > ACTS_MAX {
        return Err(Refused::TooManyKeys { keys: keys.len(), keys_max: KEYS_MAX });
    }
    if let Some(key) = keys.iter().find(|key| key.is_empty() || key.len() > ITEM_KEY_BYTES_MAX) {
        return Err(Refused::KeyLength { bytes: key.len(), bytes_max: ITEM_KEY_BYTES_MAX });
    }
    let of_keys: usize = keys.iter().map(|key| key.len()).sum();
    let bytes = of_keys + acts.iter().map(|(_, act)| act.size()).sum::<usize>();
    if bytes > BYTES_MAX {
        return Err(Refused::TooLarge { bytes, bytes_max: BYTES_MAX });
    }
    Ok(())
}

/// Whether a share of a transaction is one that this group can take.
///
/// # Errors
/// It is not; nothing was done.
pub fn check_share(group: GroupId, commit: &Commit) -> Result<(), Refused> {
    check(commit.rank.tx, &commit.reads, &commit.acts)?;
    check_groups(group, &commit.groups)
}

/// Whether these can be the groups of a transaction that touches this one.
///
/// # Errors
/// They cannot.
pub fn check_groups(group: GroupId, groups: &[GroupId]) -> Result<(), Refused> {
    let is_ascending = groups.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending || groups.len() > GROUPS_MAX.min(KEYS_MAX) || !groups.contains(&group) {
        return Err(Refused::Groups);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use quorate_kernel::engine::{Opening, Pace};
    use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
    use quorate_kernel::keyspace::{Birth, CatalogRefusal, Keyspace, Settings as Words};
    use quorate_kernel::storage::Durability;
    use quorate_kernel::view::{Range, View, ViewId};

    fn keyspace(words: &[(&str, &str)]) -> Keyspace {
        let words = words.iter().map(|(name, word)| (name.to_string(), word.to_string()));
        let settings = ENGINE.complete(&words.collect::<Words>()).expect("they can be set");
        let view = |host| {
            let id = ViewId { group: GroupId(host), version: 0 };
            View::new(id, Range::ALL, Vec::from([NodeId(host)]))
        };
        let birth = Birth::Groups((1..=7).map(view).collect());
        Keyspace { birth, ..Keyspace::new("k", LaneId(17), ENGINE.name, settings, 3) }
    }

    fn opened(keyspace: &Keyspace) -> Result<Settings, CatalogRefusal> {
        let (cluster, pace) = (ClusterId(1), &Pace::default());
        Settings::of(&Opening { keyspace, cluster, signing_key: [7; 32], pace })
    }

    #[test]
    fn a_keyspace_is_opened_as_it_is_set() {
        let usual = opened(&keyspace(&[])).expect("defaults");
        let counts = |of: &Settings| (of.founders.len(), of.founders[0].len());
        assert_eq!((counts(&usual), usual.durability), ((2, 3), Durability::Sync));
        let words = [("replicas", "5"), ("groups", "9"), ("durability", "memory"), ("value", "7")];
        let other = opened(&keyspace(&words)).expect("it can be set");
        assert_eq!((counts(&other), other.durability), ((9, 5), Durability::Memory));
        assert_eq!((other.value_bytes_max, other.replicas), (7, 5));
    }

    #[test]
    fn who_founds_groups_stays_when_replicas_are_altered() {
        let mut altered = keyspace(&[]);
        altered.settings.insert("replicas".to_string(), "7".to_string());
        let (before, after) = (opened(&keyspace(&[])), opened(&altered));
        let (before, after) = (before.expect("defaults"), after.expect("it can be altered"));
        assert_eq!((after.founders, after.replicas), (before.founders, 7));
    }

    #[test]
    fn what_cannot_be_set_is_refused_by_name() {
        for setting in ENGINE.settings {
            let mut broken = keyspace(&[]);
            broken.settings.insert(setting.name.to_string(), "?".to_string());
            let refused = opened(&broken).expect_err("no setting is `?`").to_string();
            assert!(refused.contains(setting.name), "{refused}");
            broken.settings.remove(setting.name);
            // Keyspaces may be older than `reads`.
            let is_needed = setting.name != "reads";
            assert_eq!(opened(&broken).is_err(), is_needed, "{} is missing", setting.name);
        }
        for needed in ["replicas", "durability", "value"] {
            assert!(ENGINE.settings.iter().any(|it| it.name == needed), "{needed}");
        }
    }
}
