//! The text files that the rules look at, by path.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The folders that hold code of ours, and single files beside them.
const PLACES: [&str; 7] =
    ["clients", "crates", "examples", "tests", "xtask", "Cargo.toml", "ARCHITECTURE.md"];

/// What is read: sources, manifests, scenarios, lists and documents.
const ENDINGS: [&str; 8] = [".rs", ".py", ".go", ".java", ".sh", ".toml", ".txt", ".md"];

/// Folders that tools fill, not people; `v1` is the Python code of the native API's schema.
const GENERATED: [&str; 5] = ["target", "__pycache__", "corpus", "generated", "v1"];

/// Whether a file is of the tests alone.
pub fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/testing/")
}

/// A snapshot of the repository's text files; paths are relative, with slashes.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads all that the rules look at below `root`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        for place in PLACES {
            tree.add(root, place)?;
        }
        Ok(tree)
    }

    /// A tree from paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(owned).collect() }
    }

    /// The same with one file more, or another text of it.
    #[cfg(test)]
    pub fn and(&self, path: &str, text: &str) -> Self {
        let mut files = self.files.clone();
        files.insert(path.to_owned(), text.to_owned());
        Self { files }
    }

    /// The text of the file at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files below `folder` whose path ends in `ending`.
    pub fn below<'a>(
        &'a self,
        folder: &'a str,
        ending: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_below =
            move |path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.files().filter(move |(path, _)| is_below(path) && path.ends_with(ending))
    }

    fn add(&mut self, root: &Path, path: &str) -> io::Result<()> {
        let place = root.join(path);
        if place.is_file() {
            if ENDINGS.iter().any(|ending| path.ends_with(ending)) {
                let text = std::fs::read_to_string(&place)
                    .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
                self.files.insert(path.to_owned(), text);
            }
        } else if place.is_dir() {
            for entry in std::fs::read_dir(&place)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if !name.starts_with('.') && !GENERATED.contains(&name.as_str()) {
                    self.add(root, &format!("{path}/{name}"))?;
                }
            }
        }
        Ok(())
    }
}
