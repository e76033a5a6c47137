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

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

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
    /// Reads that have a place.
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

    /// What was acknowledged at all may be gone, or may not.
    pub fn doubt(&mut self, is_lost: impl Fn(&Bytes) -> bool) {
        for write in self.writes.iter_mut().filter(|write| is_lost(&write.key)) {
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
        if !is_agreed {
            self.last.clear();
        }
        is_agreed
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

    /// Who wrote what was read, if that is known for certain: of nothing, nobody if no write had
    /// begun, and anybody who may have deleted it.
    fn shown(&self, read: &Read) -> Result<Shown<'a>, String> {
        let has_begun = |write: &&&Write| write.begun <= read.ended && write.value == read.value;
        let mut writers = self.writes.iter().filter(has_begun).peekable();
        if writers.peek().is_none() {
            return match &read.value {
                None => Ok(Shown::Nobody),
                Some(value) => Err(format!("{value:?} was read, which nobody had written")),
            };
        }
        let mut last = Shown::Nobody;
        for write in writers {
            match &write.ending {
                Ending::Refused if read.value.is_some() => {
                    return Err(format!("{:?} was read, which was refused", read.value));
                }
                Ending::Refused => {}
                Ending::Unknown => return Ok(Shown::Unknown),
                Ending::Placed(place) => {
                    // Of several deletes the last one that can be it.
                    let can_be = read.place.as_ref().is_none_or(|at| place <= at);
                    match last {
                        Shown::Placed(known) if known >= place || !can_be => {}
                        _ if can_be || read.value.is_some() => last = Shown::Placed(place),
                        _ => {}
                    }
                }
            }
        }
        Ok(last)
    }
}

enum Shown<'a> {
    /// What was there before the first write.
    Nobody,
    /// A write that was given this place.
    Placed(&'a Bytes),
    /// A write, or one of some, whose place is not known.
    Unknown,
}

impl Shown<'_> {
    /// Whether it is certain that it is from before this place.
    fn is_before(&self, place: &Bytes) -> bool {
        match self {
            Shown::Nobody => true,
            Shown::Placed(at) => *at < place,
            Shown::Unknown => false,
        }
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
        let Some(place) = &read.place else { continue };
        if *place <= read.after {
            let what = format!("read at {place:?}, which is not after {:?}", read.after);
            return Err(of_key(what));
        }
        // Requests of one node and one moment may share a place.
        rates.early += u64::from(matches!(shown, Shown::Placed(at) if at > place));
        rates.reads += 1;
        let expected = key.last_before(Some(place), read.begun);
        rates.stale += u64::from(expected.is_some_and(|(at, _)| shown.is_before(at)));
    }
    at_quiescence(history, &keys)?;
    Ok(rates)
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
            && shown.is_before(place)
        {
            let (lost, value) = (&write.value, &read.value);
            return Err(format!(
                "{:?} has {value:?} in the end: {lost:?} at {place:?} is lost",
                read.key
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    /// Writes of the key `k`, one after the other: value, place and the place that was seen.
    fn wrote(writes: &[(Option<&str>, &str, &str)]) -> History {
        let mut history = History::default();
        for (number, (value, place, after)) in writes.iter().enumerate() {
            let now = 10 * number as u64;
            let number = history.begin(&bytes("k"), value.map(bytes), bytes(after), now);
            let ending = match *place {
                "?" => Ending::Unknown,
                "!" => Ending::Refused,
                place => Ending::Placed(bytes(place)),
            };
            history.end(number, ending, now + 5);
        }
        history
    }

    fn read(value: Option<&str>, place: Option<&str>, after: &str, begun: u64) -> Read {
        let (value, place) = (value.map(bytes), place.map(bytes));
        Read { key: bytes("k"), value, after: bytes(after), place, begun, ended: begun + 5 }
    }

    fn told(history: &History) -> Result<(u64, u64), String> {
        judge(history).map(|rates| (rates.reads, rates.stale))
    }

    #[test]
    fn what_is_right_is_told_right() {
        let mut history = wrote(&[
            (Some("a"), "1", ""),
            (Some("b"), "3", "1"),
            (None, "5", ""),
            (Some("c"), "?", ""),
        ]);
        history.read_at_quiescence(read(None, None, "", 100));
        history.read_at_quiescence(read(Some("b"), None, "", 100));
        assert!(!history.is_agreed(), "they are asked again");
        for (value, place) in [(Some("a"), "2"), (Some("b"), "4"), (None, "6"), (Some("c"), "7")] {
            history.read(read(value, Some(place), "1", 100));
        }
        history.read(read(Some("a"), None, "9", 100));
        history.read_at_quiescence(read(None, Some("8"), "", 200));
        assert_eq!(told(&history), Ok((4, 0)));
        history.read_at_quiescence(read(None, Some("9"), "", 200));
        assert!(history.is_agreed());
        assert_eq!(told(&history), Ok((4, 0)));
    }

    #[test]
    fn what_is_never_promised_is_condemned() {
        let base = [(Some("a"), "1", ""), (Some("b"), "3", "")];
        let refused = [(Some("a"), "!", "")];
        let table = [
            (wrote(&[(Some("a"), "1", ""), (Some("b"), "1", "")]), None, "two writes"),
            (wrote(&[(Some("a"), "1", "2")]), None, "not after"),
            (wrote(&base), Some(read(Some("x"), Some("4"), "", 100)), "nobody had written"),
            (wrote(&base), Some(read(Some("b"), Some("4"), "", 0)), "nobody had written"),
            (wrote(&refused), Some(read(Some("a"), Some("4"), "", 100)), "was refused"),
            (wrote(&base), Some(read(Some("b"), Some("4"), "5", 100)), "not after"),
        ];
        for (mut history, read, words) in table {
            read.into_iter().for_each(|read| history.read(read));
            let told = told(&history).expect_err("it is broken");
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_write_that_is_gone_in_the_end_is_lost_and_hosts_must_agree() {
        let writes = [(Some("a"), "1", ""), (Some("b"), "3", "")];
        for (values, words) in [
            (&[Some("a")][..], "is lost"),
            (&[None], "is lost"),
            (&[Some("b"), Some("a")], "hosts say"),
        ] {
            let mut history = wrote(&writes);
            for value in values {
                history.read_at_quiescence(read(*value, None, "", 100));
            }
            let told = told(&history).expect_err("it is broken");
            assert!(told.contains(words), "{told}");
            history.doubt(|_| true);
            assert_eq!(judge(&history).is_ok(), values.len() == 1, "nothing is certain any more");
        }
    }

    #[test]
    fn what_should_be_rare_is_counted() {
        let mut history = wrote(&[(Some("a"), "1", ""), (Some("b"), "3", ""), (None, "5", "")]);
        let reads = [
            (Some("a"), "4", true),
            (None, "4", true),
            (Some("b"), "6", true),
            (Some("b"), "4", false),
            (None, "6", false),
        ];
        for (value, place, _) in reads {
            history.read(read(value, Some(place), "", 100));
        }
        // It began before the second write was acknowledged.
        history.read(read(Some("a"), Some("4"), "", 12));
        let stale = reads.iter().filter(|(_, _, is_stale)| *is_stale).count() as u64;
        assert_eq!(told(&history), Ok((6, stale)));
        history.read(read(Some("b"), Some("2"), "", 100));
        assert_eq!(judge(&history).map(|rates| rates.early), Ok(1), "before it was written");
    }
}
