//! The judge of keyspaces whose writes have one order, in which answers carry their places.
//!
//! Always: what is read was written to that key, by a write that had begun; no two writes of a key
//! have one place; a write comes behind what its client had seen, and so does a read that has a
//! place itself. In the end, when all is quiet, all hosts say the same of a key: the write that was
//! given the last place, or one of which nobody knows what became of it.
//!
//! With high probability: a read shows the last write before its place that was acknowledged before
//! it began, and nothing from behind its place, as what is done at two places is. How many do not
//! is counted ([`Rates`]). Each write has a value of its own.
//!
//! A listing names no key twice, and none that nobody had begun to write; in the end each host
//! lists the keys that have values, and no others. A key that is there throughout, and was for
//! long, is missing as rarely as a read is stale.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// How long after a client has given a write up it may still be given its place, in nanoseconds:
/// its node may stand still for so long, or be cut off, and then broadcast it.
const LATE_NS: u64 = 6_000_000_000;

/// Names a write of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteNumber(usize);

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was acknowledged, at this place.
    Placed(Bytes),
    /// It was refused with the promise that nothing was changed.
    Refused,
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Debug)]
struct Write {
    key: Bytes,
    /// None deletes.
    value: Option<Bytes>,
    /// Behind which place it was to come; empty if its client had seen none.
    after: Bytes,
    begun: u64,
    ended: u64,
    ending: Ending,
}

/// What was read of a key.
#[derive(Clone, Debug)]
pub struct Read {
    /// The key.
    pub key: Bytes,
    /// Its value; none if it had none.
    pub value: Option<Bytes>,
    /// Behind which place it was to be read; empty if its client had seen none.
    pub after: Bytes,
    /// At which place; none where reads have none of their own.
    pub place: Option<Bytes>,
    /// When it was asked.
    pub begun: u64,
    /// When it was answered.
    pub ended: u64,
}

/// How often what is promised with high probability was not so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Reads that have a place, or were to come behind one.
    pub reads: u64,
    /// Those of them that did not show the last write before it.
    pub stale: u64,
    /// Those of them that showed a write whose place is behind theirs: it was sent twice, and done
    /// at another place where its first event was missed.
    pub early: u64,
}

/// What clients did and were told.
#[derive(Clone, Debug, Default)]
pub struct History {
    writes: Vec<Write>,
    reads: Vec<Read>,
    last: Vec<Read>,
    listings: Vec<Listing>,
    last_listings: Vec<Vec<Bytes>>,
}

/// All keys, as a client was told them page by page.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The keys, in the order in which they came.
    pub keys: Vec<Bytes>,
    /// When its first page was asked for.
    pub begun: u64,
    /// When its last page came.
    pub ended: u64,
}

impl History {
    /// A client writes; no value deletes.
    pub fn begin(
        &mut self,
        key: &Bytes,
        value: Option<Bytes>,
        after: Bytes,
        now: u64,
    ) -> WriteNumber {
        let (key, ending) = (key.clone(), Ending::Unknown);
        self.writes.push(Write { key, value, after, begun: now, ended: u64::MAX, ending });
        WriteNumber(self.writes.len() - 1)
    }

    /// A write has ended.
    pub fn end(&mut self, write: WriteNumber, ending: Ending, now: u64) {
        let write = &mut self.writes[write.0];
        (write.ending, write.ended) = (ending, now);
    }

    /// What was acknowledged from this time on may be gone, or may not.
    pub fn doubt(&mut self, since: u64) {
        for write in self.writes.iter_mut().filter(|write| write.ended >= since) {
            if let Ending::Placed(_) = write.ending {
                write.ending = Ending::Unknown;
            }
        }
    }

    /// A client has read.
    pub fn read(&mut self, read: Read) {
        self.reads.push(read);
    }

    /// Whether all hosts have said the same; if not what they said is forgotten, to ask again.
    pub fn is_agreed(&mut self) -> bool {
        let mut said: BTreeMap<&Bytes, &Option<Bytes>> = BTreeMap::new();
        let mut reads = self.last.iter();
        let is_agreed =
            reads.all(|read| *said.entry(&read.key).or_insert(&read.value) == &read.value);
        // A listing shows what one replica has: it may lack what others say, until it has compared.
        let there: BTreeSet<&Bytes> =
            said.into_iter().filter_map(|(key, value)| value.as_ref().map(|_| key)).collect();
        let lists = |listed: &Vec<Bytes>| listed.iter().collect::<BTreeSet<_>>() == there;
        let is_agreed = is_agreed && self.last_listings.iter().all(lists);
        if !is_agreed {
            self.last.clear();
            self.last_listings.clear();
        }
        is_agreed
    }

    /// A client has listed all keys.
    pub fn list(&mut self, listing: Listing) {
        self.listings.push(listing);
    }

    /// A host has listed all keys when all was quiet.
    pub fn list_at_quiescence(&mut self, keys: Vec<Bytes>) {
        self.last_listings.push(keys);
    }

    /// A host was asked when all was quiet.
    pub fn read_at_quiescence(&mut self, read: Read) {
        self.last.push(read);
    }
}

/// The writes of one key.
#[derive(Default)]
struct Key<'a> {
    writes: Vec<&'a Write>,
}

impl<'a> Key<'a> {
    /// Those that are acknowledged, with their places.
    fn placed(&self) -> impl Iterator<Item = (&'a Bytes, &'a Write)> + '_ {
        self.writes.iter().filter_map(|write| match &write.ending {
            Ending::Placed(place) => Some((place, *write)),
            _ => None,
        })
    }

    /// The last one before a place that was acknowledged before a time.
    fn last_before(&self, place: Option<&Bytes>, time: u64) -> Option<(&'a Bytes, &'a Write)> {
        let is_before = |(at, write): &(&Bytes, &Write)| {
            write.ended < time && place.is_none_or(|place| *at < place)
        };
        self.placed().filter(is_before).max_by_key(|(at, _)| *at)
    }

    /// Who may have written what was read: of nothing all who deleted it, and nobody.
    fn shown(&self, read: &Read) -> Result<Shown<'a>, String> {
        let has_begun = |write: &&&Write| write.begun <= read.ended && write.value == read.value;
        let mut shown = Shown::default();
        let mut is_refused = false;
        for write in self.writes.iter().filter(has_begun) {
            match &write.ending {
                Ending::Refused => is_refused = true,
                Ending::Unknown => shown.until = shown.until.max(Some(write.ended)),
                // Of several deletes the last one that can be it.
                Ending::Placed(at)
                    if read.value.is_some() || read.place.as_ref().is_none_or(|it| at <= it) =>
                {
                    shown.at = shown.at.max(Some(at));
                }
                Ending::Placed(_) => {}
            }
        }
        match &read.value {
            Some(value) if shown.at.is_none() && shown.until.is_none() => Err(match is_refused {
                true => format!("{value:?} was read, which was refused"),
                false => format!("{value:?} was read, which nobody had written"),
            }),
            _ => Ok(shown),
        }
    }
}

/// Which write was read: one of these, or nobody's.
#[derive(Default)]
struct Shown<'a> {
    /// The last place of those that were given one.
    at: Option<&'a Bytes>,
    /// When the last of those was given up of which nobody knows the place.
    until: Option<u64>,
}

impl Shown<'_> {
    /// Whether it is certain that it is from before a write of this place: what was given up long
    /// before that began has its place by then, if it has one.
    fn is_before(&self, place: &Bytes, write: &Write) -> bool {
        let is_earlier = |until: u64| until.saturating_add(LATE_NS) < write.begun;
        self.at.is_none_or(|at| at < place) && self.until.is_none_or(is_earlier)
    }

    /// Whether it is certain that it is from behind this place.
    fn is_behind(&self, place: &Bytes) -> bool {
        self.until.is_none() && self.at.is_some_and(|at| at > place)
    }
}

/// Whether clients were told nothing that is never promised; and how often they were told what
/// should be rare.
///
/// # Errors
/// What was broken, in words.
pub fn judge(history: &History) -> Result<Rates, String> {
    let mut keys: BTreeMap<&Bytes, Key<'_>> = BTreeMap::new();
    for write in &history.writes {
        keys.entry(&write.key).or_default().writes.push(write);
    }
    for (key, its) in &keys {
        let mut places: Vec<&Bytes> = its.placed().map(|(place, _)| place).collect();
        places.sort();
        if let Some(two) = places.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("two writes of {key:?} have the place {:?}", two[0]));
        }
        if let Some((place, write)) = its.placed().find(|(place, write)| **place <= write.after) {
            let after = &write.after;
            return Err(format!("{key:?} was written at {place:?}, which is not after {after:?}"));
        }
    }
    let none = Key::default();
    let mut rates = Rates::default();
    for read in &history.reads {
        let key = keys.get(&read.key).unwrap_or(&none);
        let of_key = |what: String| format!("key {:?}: {what}", read.key);
        let shown = key.shown(read).map_err(of_key)?;
        let Some(place) = &read.place else {
            // Whatever replica answers is as far as the client was, but for what it has missed.
            let own = key.placed().filter(|(at, _)| **at <= read.after).max_by_key(|(at, _)| *at);
            rates.reads += u64::from(!read.after.is_empty());
            rates.stale += u64::from(own.is_some_and(|(at, write)| shown.is_before(at, write)));
            continue;
        };
        if *place <= read.after {
            let what = format!("read at {place:?}, which is not after {:?}", read.after);
            return Err(of_key(what));
        }
        // Requests of one node and one moment may share a place.
        rates.early += u64::from(shown.is_behind(place));
        rates.reads += 1;
        let expected = key.last_before(Some(place), read.begun);
        rates.stale += u64::from(expected.is_some_and(|(at, write)| shown.is_before(at, write)));
    }
    for listing in &history.listings {
        judge_listing(listing, &keys, &mut rates)?;
    }
    at_quiescence(history, &keys)?;
    Ok(rates)
}

/// Whether a listing names what was written, and each key once; and how many keys it lacks that
/// were there before for long, and throughout.
fn judge_listing(
    listing: &Listing,
    keys: &BTreeMap<&Bytes, Key<'_>>,
    rates: &mut Rates,
) -> Result<(), String> {
    let listed: BTreeSet<&Bytes> = listing.keys.iter().collect();
    if listed.len() < listing.keys.len() {
        return Err(format!("{:?} was listed, with a key twice", listing.keys));
    }
    let has_begun = |write: &&Write| write.begun <= listing.ended;
    let is_put = |key: &Key<'_>| {
        let mut begun = key.writes.iter().copied().filter(has_begun);
        begun.any(|write| write.value.is_some() && write.ending != Ending::Refused)
    };
    if let Some(strange) = listed.iter().find(|key| !keys.get(**key).is_some_and(is_put)) {
        return Err(format!("{strange:?} was listed, which nobody had written"));
    }
    for (key, its) in keys {
        let begun = || its.writes.iter().copied().filter(has_begun);
        let is_settled = |write: &Write| write.ended.saturating_add(LATE_NS) < listing.begun;
        // Of one that was given up nobody knows when it is done.
        let is_there = begun().all(|write| {
            is_settled(write) && write.value.is_some() && matches!(write.ending, Ending::Placed(_))
        });
        if is_there && begun().next().is_some() {
            rates.reads += 1;
            rates.stale += u64::from(!listed.contains(key));
        }
    }
    Ok(())
}

/// Whether all hosts say the same in the end, and what was given the last place.
fn at_quiescence(history: &History, keys: &BTreeMap<&Bytes, Key<'_>>) -> Result<(), String> {
    let none = Key::default();
    let mut said: BTreeMap<&Bytes, &Read> = BTreeMap::new();
    for read in &history.last {
        let key = keys.get(&read.key).unwrap_or(&none);
        let first = said.entry(&read.key).or_insert(read);
        if first.value != read.value {
            let (one, two) = (&first.value, &read.value);
            return Err(format!("hosts say {one:?} and {two:?} of {:?} in the end", read.key));
        }
        let shown = key.shown(read).map_err(|what| format!("key {:?}: {what}", read.key))?;
        if let Some((place, write)) = key.last_before(None, u64::MAX)
            && shown.is_before(place, write)
        {
            let (lost, value) = (&write.value, &read.value);
            return Err(format!(
                "{:?} has {value:?} in the end: {lost:?} at {place:?} is lost",
                read.key
            ));
        }
    }
    let there = said.iter().filter(|(_, read)| read.value.is_some());
    let there: BTreeSet<&Bytes> = there.map(|(key, _)| *key).collect();
    for listed in &history.last_listings {
        let is_once = listed.iter().collect::<BTreeSet<_>>().len() == listed.len();
        if !is_once || listed.iter().collect::<BTreeSet<_>>() != there {
            return Err(format!("{listed:?} is listed in the end, and {there:?} is there"));
        }
    }
    Ok(())
}
