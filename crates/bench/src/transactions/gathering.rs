//! What a client gathers until it can commit (SCONEKV §4.2).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::config::Asking;
use super::draws::Step;

/// A transaction whose client reads first: which keys, and what the commit rests on.
#[derive(Debug)]
pub struct Gathering {
    asking: Asking,
    left: std::vec::IntoIter<Step>,
    seen: BTreeMap<Bytes, Option<Bytes>>,
    written: BTreeMap<Bytes, Bytes>,
}

/// What is asked for at the end.
#[derive(Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The keys that the commit rests on, with what they had; some had nothing.
    pub checks: Vec<(Bytes, Option<Bytes>)>,
    /// What is written.
    pub puts: Vec<(Bytes, Bytes)>,
}

impl Gathering {
    /// Of these operations.
    #[must_use]
    pub fn new(asking: Asking, steps: Vec<Step>) -> Gathering {
        let (seen, written) = (BTreeMap::new(), BTreeMap::new());
        Gathering { asking, left: steps.into_iter(), seen, written }
    }

    /// The next key that must be read; none if all are. A key that was read or written before is
    /// not asked for again.
    pub fn next_read(&mut self) -> Option<Bytes> {
        for step in self.left.by_ref() {
            let (key, value, does_read) = match step {
                Step::Read(key) => (key, None, true),
                Step::Modify(key, value) => (key, Some(value), true),
                Step::Write(key, value) => (key, Some(value), self.asking == Asking::Versions),
            };
            let is_known = self.seen.contains_key(&key) || self.written.contains_key(&key);
            if let Some(value) = value {
                self.written.insert(key.clone(), value);
            }
            if does_read && !is_known {
                return Some(key);
            }
        }
        None
    }

    /// What a key has.
    pub fn read(&mut self, key: Bytes, value: Option<Bytes>) {
        self.seen.insert(key, value);
    }

    /// The commit.
    #[must_use]
    pub fn gathered(self) -> Gathered {
        Gathered {
            checks: self.seen.into_iter().collect(),
            puts: self.written.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn run(asking: Asking) -> (Vec<Bytes>, Gathered) {
        let steps = vec![
            Step::Read(bytes("a")),
            Step::Write(bytes("b"), bytes("1")),
            Step::Read(bytes("b")),
            Step::Modify(bytes("c"), bytes("2")),
            Step::Write(bytes("a"), bytes("3")),
        ];
        let (mut gathering, mut reads) = (Gathering::new(asking, steps), Vec::new());
        while let Some(key) = gathering.next_read() {
            gathering.read(key.clone(), Some(bytes("0")));
            reads.push(key);
        }
        (reads, gathering.gathered())
    }

    #[test]
    fn the_first_access_goes_out_and_the_commit_rests_on_it() {
        let (reads, gathered) = run(Asking::Versions);
        assert_eq!(reads, [bytes("a"), bytes("b"), bytes("c")]);
        assert_eq!(gathered.checks.len(), 3);
        let puts = [("a", "3"), ("b", "1"), ("c", "2")];
        assert_eq!(gathered.puts, puts.map(|(key, value)| (bytes(key), bytes(value))));
    }

    #[test]
    fn what_is_only_written_is_not_read_where_nothing_rests_on_it() {
        let (reads, gathered) = run(Asking::Blind);
        assert_eq!(reads, [bytes("a"), bytes("c")]);
        assert_eq!((gathered.checks.len(), gathered.puts.len()), (2, 3));
    }
}
