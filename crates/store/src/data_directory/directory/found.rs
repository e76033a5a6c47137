//! What is found in a place before it is opened: nothing, a directory of this format or another, or
//! what is left of one.

use super::{
    BEFORE_IDENTITY, DATABASE, FORMAT, FORMAT_TEXT, FORMAT_VERSION, IDENTITY, SEGMENTS, SETTINGS,
};
use crate::data_directory::start::{START, read_start};
use crate::error::DirectoryError;
use crate::identity::Identity;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The name of something in the directory that `create` must not write over.
pub(super) fn occupant(path: &Path) -> Result<Option<String>, DirectoryError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DirectoryError::io("reading", path)(error)),
    };
    for entry in entries {
        let name = entry.map_err(DirectoryError::io("reading", path))?.file_name();
        let name = name.to_string_lossy().into_owned();
        let is_ours = [&BEFORE_IDENTITY[..], &SETTINGS].concat().contains(&name.as_str());
        if !(is_ours || name == "lost+found") {
            return Ok(Some(name));
        }
    }
    Ok(used(path)?.map(str::to_owned))
}

/// What of a directory without an identity only a start can have written.
fn used(path: &Path) -> Result<Option<&'static str>, DirectoryError> {
    for name in [DATABASE, SEGMENTS] {
        let place = path.join(name);
        let has_data = match fs::read_dir(&place) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(DirectoryError::io("reading", &place)(error)),
        };
        if has_data {
            return Ok(Some(name));
        }
    }
    Ok(read_start(path).is_ok_and(|start| start.starts > 0).then_some(START))
}

/// Refuses a directory that is none, was never finished, or has a newer format.
pub(super) fn check_format(path: &Path) -> Result<(), DirectoryError> {
    let file = path.join(FORMAT);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent(path)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(DirectoryError::damaged(&file, "it is not text"));
        }
        Err(error) => return Err(DirectoryError::io("reading", &file)(error)),
    };
    let number = text.strip_prefix(FORMAT_TEXT).and_then(|rest| rest.strip_suffix('\n'));
    match number.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(FORMAT_VERSION) => Ok(()),
        Some(found) if found > FORMAT_VERSION => Err(DirectoryError::NewerFormat {
            path: path.to_path_buf(),
            found,
            newest: FORMAT_VERSION,
        }),
        Some(found) if found >= 1 => Err(DirectoryError::OlderFormat {
            path: path.to_path_buf(),
            found,
            oldest: FORMAT_VERSION,
        }),
        _ => Err(DirectoryError::damaged(&file, "it names no format version")),
    }
}

/// What a directory without a format file is: never initialised, or wiped.
fn absent(path: &Path) -> DirectoryError {
    let has_identity = path.join(IDENTITY).exists();
    match used(path) {
        Ok(None) if !has_identity => DirectoryError::NotInitialised { path: path.to_path_buf() },
        Ok(_) => DirectoryError::Wiped { path: path.to_path_buf(), missing: "format version" },
        Err(error) => error,
    }
}

/// Who the directory says it is.
pub(super) fn read_identity(path: &Path) -> Result<Identity, DirectoryError> {
    let file = path.join(IDENTITY);
    match fs::read_to_string(&file) {
        Ok(text) => Identity::from_text(&text).map_err(|what| DirectoryError::damaged(&file, what)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(if used(path)?.is_some() {
            DirectoryError::Wiped { path: path.to_path_buf(), missing: "identity" }
        } else {
            DirectoryError::NotInitialised { path: path.to_path_buf() }
        }),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(DirectoryError::damaged(&file, "it is not text"))
        }
        Err(error) => Err(DirectoryError::io("reading", &file)(error)),
    }
}
