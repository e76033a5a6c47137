//! The start counter of a data directory, how the last start ended, and what past starts spoke.

use crate::data_directory::files::{seal, unseal};
use crate::error::DirectoryError;
use quorate_kernel::ids::{Lsn, Start};
use quorate_kernel::mutant;
use quorate_kernel::sighting::{Past, Spoken};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The file's name.
pub(crate) const START: &str = "start.toml";

/// The start counter and how the last start ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartText {
    /// How many times the directory was opened to serve.
    pub starts: u32,
    /// The boot of the machine during the newest start; empty when it cannot be known.
    pub boot: String,
    /// Whether the newest start ended with everything synced.
    pub stopped_cleanly: bool,
    /// Whether all that was ever handed to the operating system is still there. It stays false
    /// over restarts until [`crate::Directory::refilled`].
    pub unsynced_survived: bool,
    /// The inodes of the files that are written once and never replaced, when the newest start
    /// began. A copy has others.
    pub place: String,
    /// The starts that spoke to others: start, run and last batch kept, or `-` while it lasts.
    pub past: Vec<String>,
    /// Whether it was ordered to take the directory as one that was moved, and the node has not
    /// met the others since. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_moved: bool,
}

impl StartText {
    /// Of a directory that was never opened.
    pub fn first() -> StartText {
        StartText {
            starts: 0,
            boot: String::new(),
            stopped_cleanly: false,
            unsynced_survived: true,
            place: String::new(),
            past: Vec::new(),
            is_moved: false,
        }
    }

    /// Whether the directory is a copy that was made while its host ran, or was moved to another
    /// file system after its host was killed: it lies elsewhere, and was not closed.
    pub fn is_copy(&self, place: &str) -> bool {
        self.starts > 0 && !self.stopped_cleanly && self.place != place
    }

    /// Whether the system's memory may have what this start wrote and the disk has not, though it
    /// counts as synced: the start was not closed, so a sync of it may have failed, and the machine
    /// was of this boot, or it is not known of which.
    pub fn memory_may_differ(&self, boot: &str) -> bool {
        let is_same_boot = boot.is_empty() || self.boot.is_empty() || boot == self.boot;
        self.starts > 0 && !self.stopped_cleanly && is_same_boot
    }

    /// The starts that spoke to others; nothing if they make no sense.
    pub fn past(&self) -> Option<Past> {
        Past::of(self.past.iter().map(|text| spoken_of(text)).collect::<Option<_>>()?)
    }

    pub fn set_past(&mut self, past: &Past) {
        self.past = past.spoken().iter().map(spoken_text).collect();
    }
}

fn spoken_text(spoken: &Spoken) -> String {
    let end = spoken.end.map_or_else(|| "-".to_owned(), |end| end.0.to_string());
    format!("{} {:016x} {end}", spoken.start.0, spoken.run)
}

fn spoken_of(text: &str) -> Option<Spoken> {
    let mut words = text.split(' ');
    let start = Start(words.next()?.parse().ok()?);
    let run = u64::from_str_radix(words.next()?, 16).ok()?;
    let end = match words.next()? {
        "-" => None,
        end => Some(Lsn(end.parse().ok()?)),
    };
    words.next().is_none().then_some(Spoken { start, run, end })
}

/// The next start after the last one, on a machine of this boot, in a directory with these inodes,
/// which `is_moved` says was moved.
pub(crate) fn raise(last: &StartText, boot: &str, place: &str, is_moved: bool) -> StartText {
    let same_boot = !boot.is_empty() && boot == last.boot;
    // What a copy lacks of what was not synced is not known, whatever the machine did since.
    let is_at_home = !is_moved && !last.is_copy(place);
    let kept = last.starts == 0 || last.stopped_cleanly || (same_boot && is_at_home);
    StartText {
        starts: last.starts.checked_add(1).expect("a start a second lasts for 136 years"),
        boot: boot.to_owned(),
        stopped_cleanly: false,
        unsynced_survived: last.unsynced_survived && kept,
        place: place.to_owned(),
        past: last.past.clone(),
        is_moved: is_moved || (last.is_moved && !mutant!("moved_for_one_start")),
    }
}

/// The sealed text of the file.
pub(crate) fn start_text(start: &StartText) -> String {
    seal(&toml::to_string(start).expect("strings, numbers and flags always have a TOML form"))
}

/// Reads the counter of a directory.
pub(crate) fn read_start(path: &Path) -> Result<StartText, DirectoryError> {
    let file = path.join(START);
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => DirectoryError::damaged(&file, "it is not text"),
        _ => DirectoryError::io("reading", &file)(error),
    })?;
    let body = unseal(&text).map_err(|what| DirectoryError::damaged(&file, what))?;
    toml::from_str(body).map_err(|error| DirectoryError::damaged(&file, error.message()))
}

/// The id of the machine's present boot, or nothing where the system does not tell.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(boot: &str, stopped_cleanly: bool, unsynced_survived: bool) -> StartText {
        let (boot, place) = (boot.to_owned(), "7".to_owned());
        let past = Vec::new();
        let is_moved = false;
        StartText { starts: 4, boot, stopped_cleanly, unsynced_survived, place, past, is_moved }
    }

    #[test]
    fn only_an_unclean_stop_of_the_machine_loses_what_was_not_synced() {
        let survived = |last: &StartText, boot| raise(last, boot, "7", false).unsynced_survived;
        assert!(survived(&ended("a", false, true), "a"), "the process was killed");
        assert!(survived(&ended("a", true, true), "b"), "the machine restarted after a stop");
        assert!(!survived(&ended("a", false, true), "b"), "the machine lost power");
        assert!(!survived(&ended("", false, true), ""), "nothing is known of the boot");
        assert!(!survived(&ended("a", true, false), "a"), "it is remembered until refilled");
        let next = raise(&ended("a", true, true), "a", "7", false);
        assert_eq!((next.starts, next.stopped_cleanly), (5, false));
        assert!(
            !raise(&ended("a", false, true), "a", "7", true).unsynced_survived,
            "it was ordered"
        );
        assert!(raise(&ended("a", true, true), "a", "7", true).unsynced_survived, "it was closed");
    }

    #[test]
    fn a_copy_of_what_was_not_closed_has_lost_what_was_not_synced() {
        assert!(ended("a", false, true).is_copy("8") && !ended("a", false, true).is_copy("7"));
        assert!(!ended("a", true, true).is_copy("8"), "it was closed");
        assert!(!StartText::first().is_copy("8"), "it was never opened");
        assert!(!raise(&ended("a", false, true), "a", "8", false).unsynced_survived);
        assert!(raise(&ended("a", true, true), "a", "8", false).unsynced_survived);
    }

    #[test]
    fn memory_is_compared_with_the_disk_after_a_start_of_this_boot_that_was_not_closed() {
        let may_differ = |last: &StartText, boot| last.memory_may_differ(boot);
        assert!(
            may_differ(&ended("a", false, true), "a") && may_differ(&ended("", false, true), "")
        );
        assert!(!may_differ(&ended("a", false, true), "b"), "memory is new since then");
        assert!(!may_differ(&ended("a", true, true), "a"), "all of it was synced");
        assert!(!may_differ(&StartText::first(), "a"));
    }

    #[test]
    fn the_past_is_read_back() {
        let mut past = Past::default();
        past.begin(Start(3), u64::MAX - 5);
        assert!(past.end(Lsn(u64::MAX)));
        past.begin(Start(7), 9);
        let mut text = StartText::first();
        text.set_past(&past);
        assert_eq!(text.past(), Some(past));
        for wrong in ["", "1 2", "1 2 3 4", "x 2 3", "1 2 y"] {
            text.past = vec![wrong.to_owned()];
            assert_eq!(text.past(), None, "{wrong}");
        }
    }
}
