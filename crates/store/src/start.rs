//! The start counter of a data directory, and how the last start ended.

use crate::error::DirectoryError;
use crate::files::{seal, unseal};
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
}

impl StartText {
    /// Of a directory that was never opened.
    pub fn first() -> StartText {
        StartText {
            starts: 0,
            boot: String::new(),
            stopped_cleanly: false,
            unsynced_survived: true,
        }
    }
}

/// The next start after the last one, on a machine of this boot.
pub(crate) fn raise(last: &StartText, boot: &str) -> StartText {
    let same_boot = !boot.is_empty() && boot == last.boot;
    let kept = last.starts == 0 || last.stopped_cleanly || same_boot;
    StartText {
        starts: last.starts.checked_add(1).expect("a start a second lasts for 136 years"),
        boot: boot.to_owned(),
        stopped_cleanly: false,
        unsynced_survived: last.unsynced_survived && kept,
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
        StartText { starts: 4, boot: boot.to_owned(), stopped_cleanly, unsynced_survived }
    }

    #[test]
    fn only_an_unclean_stop_of_the_machine_loses_what_was_not_synced() {
        let survived = |last: &StartText, boot| raise(last, boot).unsynced_survived;
        assert!(survived(&ended("a", false, true), "a"), "the process was killed");
        assert!(survived(&ended("a", true, true), "b"), "the machine restarted after a stop");
        assert!(!survived(&ended("a", false, true), "b"), "the machine lost power");
        assert!(!survived(&ended("", false, true), ""), "nothing is known of the boot");
        assert!(!survived(&ended("a", true, false), "a"), "it is remembered until refilled");
        assert_eq!(raise(&ended("a", true, true), "a").starts, 5);
        assert!(!raise(&ended("a", true, true), "a").stopped_cleanly);
    }
}
