//! What answers and events say of the change of one zxid.

use super::facts::Facts;
use super::model::parent;
use super::stream::Stream;
use crate::history::Completion;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Changed, Item, Stat, Told, What};

/// What the change of one zxid has done, among other things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The node.
    pub path: String,
    /// What has become of it.
    pub what: What,
    /// Which operation shows it; none if an event does.
    pub asked: Option<usize>,
}

/// What is known of the changes of zxids, and at which time each was.
#[derive(Debug, Default)]
pub(super) struct AllEvidence {
    pub of: BTreeMap<u64, Vec<Evidence>>,
    /// What a node had since the change of a zxid.
    pub values: BTreeMap<(u64, String), Bytes>,
    /// The times of changes as stats have them, and which operation has shown it.
    pub times: BTreeMap<u64, (i64, usize)>,
    /// Two operations that show different times of one change.
    pub unlike: Option<(u64, usize, usize)>,
}

impl Evidence {
    /// Whether a change that has done this to nodes is what was seen.
    pub fn fits(&self, changes: &[(String, What)]) -> bool {
        changes.iter().any(|(path, what)| match self.what {
            What::Children => *what != What::Data && parent(path) == Some(&self.path),
            seen => *what == seen && *path == self.path,
        })
    }
}

impl AllEvidence {
    /// All that a record says.
    pub fn of(facts: &Facts<'_>, streams: &[Stream<'_>]) -> AllEvidence {
        let mut all = AllEvidence::default();
        let changed = streams.iter().flat_map(Stream::changed);
        changed.for_each(|changed| all.event(changed));
        for (index, asked) in facts.record.asked.iter().enumerate() {
            let (Operation::Tree(ask), Completion::Tree(reply)) =
                (&asked.operation, asked.completion())
            else {
                continue;
            };
            let Ok(told) = &reply.told else { continue };
            match (&ask.act, told) {
                (Act::One(item), told) => all.told(index, item, told),
                (Act::All(items) | Act::Each(items), Told::Many(many)) => {
                    for (item, told) in items.iter().zip(many) {
                        if let Ok(told) = told {
                            all.told(index, item, told);
                        }
                    }
                }
                _ => {}
            }
        }
        all
    }

    fn event(&mut self, changed: &Changed) {
        let Changed { zxid, path, what } = changed;
        self.add(zxid.0, path, *what, None);
    }

    fn add(&mut self, zxid: u64, path: &str, what: What, asked: Option<usize>) {
        let all = self.of.entry(zxid).or_default();
        if zxid > 0 && !all.iter().any(|had| had.path == path && had.what == what) {
            all.push(Evidence { path: path.to_string(), what, asked });
        }
    }

    fn told(&mut self, index: usize, item: &Item, told: &Told) {
        if let Told::Data { data: Some(data), stat } = told {
            let key = (stat.mzxid.0, item.path().to_string());
            self.values.insert(key, data.clone());
        }
        match told {
            Told::Created { path, stat } => self.stat(index, path, stat),
            Told::Stat(stat)
            | Told::Data { stat, .. }
            | Told::Children { stat, .. }
            | Told::Acl { stat, .. } => self.stat(index, item.path(), stat),
            _ => {}
        }
    }

    fn stat(&mut self, index: usize, path: &str, stat: &Stat) {
        let (made, set, below) = (stat.czxid.0, stat.mzxid.0, stat.pzxid.0);
        self.add(made, path, What::Created, Some(index));
        // What one change makes and sets is told once.
        if set != made {
            self.add(set, path, What::Data, Some(index));
        }
        if below != made {
            self.add(below, path, What::Children, Some(index));
        }
        self.time(made, stat.ctime, index);
        self.time(set, stat.mtime, index);
    }

    fn time(&mut self, zxid: u64, ms: i64, index: usize) {
        let (had, by) = *self.times.entry(zxid).or_insert((ms, index));
        if had != ms {
            self.unlike.get_or_insert((zxid, by, index));
        }
    }
}
