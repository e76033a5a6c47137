//! A key whose presence is certain throughout a whole scan appears in it at least once, and no key
//! appears that was never written or was surely deleted before the scan began.
//!
//! A scan is a chain of pages of one client: the first from token 0, each other one from where
//! the page before it said to continue, the last without such a token. A page that failed may be
//! asked for again. A client has one scan at a time. A chain that was given up says nothing about
//! what is missing. Values are not judged: pages hold keys only. That each key of a page is shown
//! as a get would show it is a question of linearizability ([`crate::linearizable`]).

use crate::explain::{Explanation, act, shown};
use crate::histories::register::Partition;
use crate::history::{ClientId, Completion, Entry, History};
use crate::report::Verdict;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Operation};

/// Judges one history.
#[must_use]
pub fn judge(history: &History) -> Verdict {
    let mut partition = Partition::default();
    partition.fill(history);
    judge_keys(&partition, history)
}

/// Whether a history has anything to judge here.
pub(crate) fn has_scans(history: &History) -> bool {
    history.entries().iter().any(|entry| matches!(entry.operation(), Operation::Scan { .. }))
}

/// Pages of one client that follow each other.
pub(crate) struct Chain {
    /// When its first page was asked for.
    pub began: u32,
    /// From where its next page must be.
    next: Cursor,
    pub pages: Vec<u32>,
    /// Whether it goes from the first token to the end.
    pub is_whole: bool,
}

impl Chain {
    fn new(began: u32) -> Chain {
        Chain { began, next: Cursor::default(), pages: Vec::new(), is_whole: false }
    }

    /// The keys of one of its pages.
    pub fn keys<'a>(&self, page: u32, history: &'a History) -> impl Iterator<Item = &'a Bytes> {
        let keys = match history.entries()[page as usize].completion() {
            Completion::Page { keys, .. } => &keys[..],
            _ => &[],
        };
        keys.iter()
    }

    /// When its last page was told.
    pub fn ended(&self, history: &History) -> u32 {
        let ends = self.pages.iter().map(|&page| history.entries()[page as usize].ended);
        ends.fold(self.began, u32::max)
    }
}

/// All pages of a history, each in one chain. A page that follows none is one by itself.
pub(crate) fn chains(history: &History) -> Vec<Chain> {
    let mut chains = Vec::new();
    let mut open: BTreeMap<ClientId, Chain> = BTreeMap::new();
    for (index, entry) in (0u32..).zip(history.entries()) {
        let Operation::Scan { from, .. } = entry.operation() else { continue };
        let Completion::Page { next, .. } = entry.completion() else { continue };
        let client = entry.client();
        if *from == Cursor::default() {
            chains.extend(open.insert(client, Chain::new(entry.began)));
        }
        let Some(chain) = open.get_mut(&client).filter(|chain| chain.next == *from) else {
            chains.push(Chain { pages: [index].into(), ..Chain::new(entry.began) });
            continue;
        };
        chain.pages.push(index);
        match next {
            Some(next) => chain.next = next.clone(),
            None => {
                chain.is_whole = true;
                chains.extend(open.remove(&client));
            }
        }
    }
    chains.extend(open.into_values());
    chains
}

/// Judges a history that the partition was filled with.
pub(crate) fn judge_keys(partition: &Partition, history: &History) -> Verdict {
    if let Some(unjudged) = partition.unjudged() {
        return unjudged;
    }
    let judge = ScanJudge { partition, history };
    for chain in chains(history) {
        let keys = |&page| chain.keys(page, history).map(move |key| (page, key));
        let mut shown = chain.pages.iter().flat_map(keys);
        if let Some(explanation) = shown.find_map(|(page, key)| judge.wrong(key, page, chain.began))
        {
            return Verdict::Violated(Box::new(explanation));
        }
        if chain.is_whole
            && let Some(explanation) = judge.missing(&chain)
        {
            return Verdict::Violated(Box::new(explanation));
        }
    }
    Verdict::Holds
}

struct ScanJudge<'a> {
    partition: &'a Partition,
    history: &'a History,
}

impl ScanJudge<'_> {
    fn writes(&self, key: usize) -> impl Iterator<Item = (u32, &Entry)> + Clone {
        let entries = self.partition.entries(key).iter();
        let all = self.history.entries();
        let named = entries.map(move |&entry| (entry, &all[entry as usize]));
        named.filter(|(_, entry)| entry.may_have_written())
    }

    fn puts(&self, key: usize) -> impl Iterator<Item = (u32, &Entry)> + Clone {
        self.writes(key).filter(|(_, entry)| matches!(entry.operation(), Operation::Put { .. }))
    }

    fn deletes(&self, key: usize) -> impl Iterator<Item = (u32, &Entry)> + Clone {
        self.writes(key).filter(|(_, entry)| matches!(entry.operation(), Operation::Delete { .. }))
    }

    /// Whether a key of a page of a scan cannot have been there since the scan began.
    fn wrong(&self, name: &Bytes, page: u32, scan_began: u32) -> Option<Explanation> {
        let entry = &self.history.entries()[page as usize];
        let scan = format!("scan by {} returned the key", entry.client());
        let headline = "a scan returned a key that was not there";
        let explain = |entries: Vec<u32>, why| {
            Some(Explanation::new(self.history, name, headline, entries, why))
        };
        let key = self.partition.find(name, self.history);
        let puts = key.into_iter().flat_map(|key| self.puts(key));
        let puts = puts.filter(|(_, put)| put.began < entry.ended);
        if puts.clone().next().is_none() {
            return explain([page].into(), format!("{scan} before anybody had begun to put it"));
        }
        let deletes = key.into_iter().flat_map(|key| self.deletes(key));
        let (index, delete) = deletes
            .filter(|(_, delete)| delete.is_answered() && delete.ended < scan_began)
            .max_by_key(|(_, delete)| delete.began)?;
        let may_be_later = |put: &Entry| !put.is_answered() || put.ended > delete.began;
        if puts.clone().any(|(_, put)| may_be_later(put)) {
            return None;
        }
        let act = act(delete);
        let why = format!("{scan}, though {act} had completed before it began and no put followed");
        explain([index, page].into(), why)
    }

    /// A key that was there throughout a whole scan but on none of its pages.
    fn missing(&self, chain: &Chain) -> Option<Explanation> {
        let all = self.history.entries();
        let mut is_seen = alloc::vec![false; self.partition.keys()];
        let ended = chain.ended(self.history);
        for key in chain.pages.iter().flat_map(|&page| chain.keys(page, self.history)) {
            if let Some(key) = self.partition.find(key, self.history) {
                is_seen[key] = true;
            }
        }
        let unseen = (0..self.partition.keys()).filter(|&key| !is_seen[key]);
        let (key, put) =
            unseen.filter_map(|key| Some((key, self.certain(key, chain, ended)?))).next()?;
        let name = self.partition.name(key, self.history);
        let why = format!(
            "{} had completed before the scan by {} began and no delete followed, yet key {} is on \
             none of the scan's {} pages",
            act(&all[put as usize]),
            all[chain.pages[0] as usize].client(),
            shown(name),
            chain.pages.len()
        );
        let entries = chain.pages.iter().copied().chain([put]);
        let headline = "a scan missed a key that was there throughout";
        Some(Explanation::new(self.history, name, headline, entries, why))
    }

    /// The put that makes a key's presence certain from the beginning of a scan to its end.
    fn certain(&self, key: usize, chain: &Chain, ended: u32) -> Option<u32> {
        let puts = self.puts(key);
        let (index, put) = puts
            .filter(|(_, put)| put.is_answered() && put.ended < chain.began)
            .max_by_key(|(_, put)| put.began)?;
        let may_strike = |delete: &Entry| {
            delete.began < ended && (!delete.is_answered() || delete.ended > put.began)
        };
        let is_certain = !self.deletes(key).any(|(_, delete)| may_strike(delete));
        is_certain.then_some(index)
    }
}
