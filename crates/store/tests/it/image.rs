//! What a data directory looks like to whoever opens it after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How often an image is begun anew.
const TRIES_MAX: usize = 1000;
/// A file of so many bytes without a block of its own is a hole, and not read.
const LONG_BYTES: u64 = 1 << 20;

/// Which files there are: names, and what changes with their contents.
#[derive(PartialEq, Eq)]
struct Listing(BTreeMap<PathBuf, (u64, u64, i64, i64)>);

impl Listing {
    fn of(root: &Path) -> io::Result<Listing> {
        let (mut listing, mut directories) = (BTreeMap::new(), vec![root.to_path_buf()]);
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let about = entry.metadata()?;
                if about.is_dir() {
                    directories.push(entry.path());
                }
                let shape = (about.ino(), about.len(), about.mtime(), about.mtime_nsec());
                listing.insert(entry.path(), shape);
            }
        }
        Ok(Listing(listing))
    }
}

/// The files of a directory, taken while a host may still be writing to it: what the operating
/// system holds if the process is killed now. Zeros at the end of a file are kept as its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    pub files: BTreeMap<PathBuf, Content>,
    directories: Vec<PathBuf>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub length: u64,
}

impl Content {
    /// Drops the zeros at the end, which the length keeps.
    pub fn trim(&mut self) {
        let bytes = &mut self.bytes;
        let page = [0; 4096];
        while bytes.len() >= page.len() && bytes[bytes.len() - page.len()..] == page {
            bytes.truncate(bytes.len() - page.len());
        }
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
    }
}

impl Image {
    /// Taken anew where files change meanwhile: the database merges tables whenever it likes.
    pub fn of(root: &Path) -> Image {
        for _ in 0..TRIES_MAX {
            let before = Listing::of(root);
            let nothing = Image { files: BTreeMap::new(), directories: Vec::new() };
            let (mut image, mut again) = (nothing.clone(), nothing);
            let taken = before.and_then(|before| {
                image.collect(root, Path::new(""))?;
                // Two writes within one tick of the clock leave one time.
                again.collect(root, Path::new(""))?;
                Ok(Listing::of(root)? == before && again == image)
            });
            match taken {
                Ok(true) => return image,
                Ok(false) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            }
        }
        panic!("the files of {} never rest", root.display());
    }

    fn collect(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            let about = entry.metadata()?;
            if about.is_dir() {
                self.directories.push(name.clone());
                self.collect(root, &name)?;
                continue;
            }
            let is_hole = about.len() >= LONG_BYTES && about.blocks() == 0;
            let bytes = if is_hole { Vec::new() } else { fs::read(entry.path())? };
            let length = if is_hole { about.len() } else { bytes.len() as u64 };
            let mut content = Content { bytes, length };
            content.trim();
            self.files.insert(name, content);
        }
        Ok(())
    }

    pub fn restore(&self) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a temporary directory");
        for name in &self.directories {
            fs::create_dir_all(place.path().join(name)).expect("created");
        }
        for (name, content) in &self.files {
            let path = place.path().join(name);
            fs::write(&path, &content.bytes).expect("written");
            let file = File::options().write(true).open(&path).expect("opened");
            file.set_len(content.length).expect("extended");
        }
        place
    }

    /// The bytes of a file, with zeros up to its length.
    pub fn padded(&mut self, name: &str) -> &mut Vec<u8> {
        let content = self.files.get_mut(Path::new(name)).expect("there is such a file");
        content.bytes.resize(content.length as usize, 0);
        &mut content.bytes
    }

    /// The same with no zeros at the ends of files but what their lengths tell.
    pub fn trimmed(&self) -> Image {
        let mut image = self.clone();
        image.files.values_mut().for_each(Content::trim);
        image
    }

    /// What the store wrote: the log and the database.
    pub fn store(&self) -> BTreeMap<&Path, &Content> {
        let is_store = |name: &Path| name.starts_with("db") || name.starts_with("log");
        let of_store = self.files.iter().filter(|(name, _)| is_store(name));
        of_store.map(|(name, content)| (name.as_path(), content)).collect()
    }

    /// This image with the files below a place from another.
    pub fn with(&self, place: &str, other: &Image) -> Image {
        let mut mixed = self.clone();
        mixed.files.retain(|name, _| !name.starts_with(place));
        mixed.directories.retain(|name| !name.starts_with(place));
        let files = other.files.iter().filter(|(name, _)| name.starts_with(place));
        mixed.files.extend(files.map(|(name, content)| (name.clone(), content.clone())));
        let directories = other.directories.iter().filter(|name| name.starts_with(place));
        mixed.directories.extend(directories.cloned());
        mixed
    }

    /// Removes a file, or a directory and all below it.
    pub fn remove(&mut self, name: &str) {
        let before = self.files.len() + self.directories.len();
        self.files.retain(|path, _| !path.starts_with(name));
        self.directories.retain(|path| !path.starts_with(name));
        assert!(self.files.len() + self.directories.len() < before, "{name} was there");
    }
}
