//! Paths of trees: which texts name a node, and where.
//!
//! The rules are those of ZooKeeper's clients and servers, so a path that one of them takes is
//! taken here, and none else; but for its length, as paths are parts of keys.

use crate::limits::{KEY_BYTES_MAX, TREE_PATH_BYTES_MAX};
use crate::tree::Failure;
use alloc::format;
use alloc::string::String;

/// The most bytes of the number behind a sequential name.
pub const SEQUENCE_BYTES_MAX: usize = 11;

const _: () = assert!(TREE_PATH_BYTES_MAX + 64 <= KEY_BYTES_MAX, "a path fits a key");

/// An absolute path: `/`, or names that each follow a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path<'a>(&'a str);

/// Where a node is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The node below which it is made, which need not be there.
    pub parent: Path<'a>,
    /// Its name, or what is before the number of a sequential one.
    pub name: &'a str,
}

impl<'a> Path<'a> {
    /// The one node without a parent.
    pub const ROOT: Path<'static> = Path("/");

    /// Reads a path.
    ///
    /// # Errors
    /// [`Failure::BadArguments`]: no node can have it.
    pub fn of(text: &'a str) -> Result<Path<'a>, Failure> {
        let names = text.strip_prefix('/').ok_or(Failure::BadArguments)?;
        let is_short = text.len() <= TREE_PATH_BYTES_MAX;
        let is_path = names.is_empty() || names.split('/').all(is_name);
        (is_short && is_path).then_some(Path(text)).ok_or(Failure::BadArguments)
    }

    /// As clients write it.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0
    }

    /// The path without its last name; the root has none.
    #[must_use]
    pub fn parent(self) -> Option<Path<'a>> {
        match self.0.rsplit_once('/') {
            Some((_, "")) | None => None,
            Some(("", _)) => Some(Path::ROOT),
            Some((parent, _)) => Some(Path(parent)),
        }
    }

    /// Its last name; that of the root is empty.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.0.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// The text of the path of a child.
    #[must_use]
    pub fn child(self, name: &str) -> String {
        let parent = if self == Path::ROOT { "" } else { self.0 };
        format!("{parent}/{name}")
    }

    /// It and those above it, from the root on.
    pub fn whole(self) -> impl Iterator<Item = Path<'a>> {
        let ends = self.0.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        let above = ends.map(move |end| Path(&self.0[..end]));
        let last = (self != Path::ROOT).then_some(self);
        core::iter::once(Path::ROOT).chain(above).chain(last)
    }
}

impl<'a> Place<'a> {
    /// Where a node is to be made. Before the number of a sequential one may be nothing, or a name
    /// that is none without the number.
    ///
    /// # Errors
    /// [`Failure::BadArguments`]: no node can have the path. [`Failure::Exists`]: it is the root.
    pub fn of(text: &'a str, is_sequential: bool) -> Result<Place<'a>, Failure> {
        if !is_sequential {
            let path = Path::of(text)?;
            let parent = path.parent().ok_or(Failure::Exists)?;
            return Ok(Place { parent, name: path.name() });
        }
        let (parent, name) = text.rsplit_once('/').ok_or(Failure::BadArguments)?;
        let parent = if parent.is_empty() { Path::ROOT } else { Path::of(parent)? };
        let is_short = text.len() + SEQUENCE_BYTES_MAX <= TREE_PATH_BYTES_MAX;
        let is_place = is_short && name.chars().all(is_of_names);
        is_place.then_some(Place { parent, name }).ok_or(Failure::BadArguments)
    }

    /// The text of the path of a node that is made here, with a number if it is sequential.
    #[must_use]
    pub fn path(self, number: Option<i32>) -> String {
        match number {
            Some(number) => self.parent.child(&format!("{}{number:010}", self.name)),
            None => self.parent.child(self.name),
        }
    }
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.chars().all(is_of_names)
}

/// Whether a character may be in a name. ZooKeeper looks at UTF-16, and forbids surrogates, so
/// nothing beyond the first plane may.
fn is_of_names(char: char) -> bool {
    !matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_is_no_path_is_refused() {
        for path in
            ["/", "/a", "/a/b.c", "/.a", "/a..", "/...", "/zürich/東京", "/a b", "/\u{ffef}"]
        {
            assert_eq!(Path::of(path).map(Path::text), Ok(path));
        }
        for path in [
            "",
            "a",
            "a/b",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/..",
            "/a/./b",
            "/a/../b",
            "/a/..",
            "/\0",
            "/a\u{1}",
            "/\u{1f}b",
            "/\u{7f}",
            "/\u{9f}",
            "/\u{e000}",
            "/\u{f8ff}",
            "/\u{fff0}",
            "/\u{1f600}",
        ] {
            assert_eq!(Path::of(path), Err(Failure::BadArguments), "{path:?}");
        }
    }

    #[test]
    fn the_longest_path_is_one_and_one_byte_more_is_not() {
        let mut path = format!("/{}", "a".repeat(TREE_PATH_BYTES_MAX - 1));
        assert!(Path::of(&path).is_ok());
        path.push('a');
        assert_eq!(Path::of(&path), Err(Failure::BadArguments));
        path.truncate(TREE_PATH_BYTES_MAX - SEQUENCE_BYTES_MAX);
        let place = Place::of(&path, true).unwrap();
        assert_eq!(place.path(Some(i32::MIN)).len(), TREE_PATH_BYTES_MAX);
        path.push('a');
        assert_eq!(Place::of(&path, true), Err(Failure::BadArguments));
    }

    #[test]
    fn a_path_has_a_parent_and_a_name() {
        let parts = |text| Path::of(text).map(|path| (path.parent().map(Path::text), path.name()));
        assert_eq!(parts("/"), Ok((None, "")));
        assert_eq!(parts("/a"), Ok((Some("/"), "a")));
        assert_eq!(parts("/a/b/c"), Ok((Some("/a/b"), "c")));
        let whole = |text| Path::of(text).unwrap().whole().map(Path::text).collect::<Vec<_>>();
        assert_eq!(whole("/"), ["/"]);
        assert_eq!(whole("/a/bc/d"), ["/", "/a", "/a/bc", "/a/bc/d"]);
        assert_eq!((Path::ROOT.child("a"), Path("/a").child("b")), ("/a".into(), "/a/b".into()));
    }

    #[test]
    fn a_sequential_name_may_be_empty_and_ends_with_ten_digits() {
        let path = |text, number| Place::of(text, true).map(|place| place.path(Some(number)));
        assert_eq!(path("/a/", 0), Ok("/a/0000000000".into()));
        assert_eq!(path("/", 12), Ok("/0000000012".into()));
        assert_eq!(path("/a/b-", i32::MAX), Ok("/a/b-2147483647".into()));
        assert_eq!(path("/a/b", -1), Ok("/a/b-000000001".into()));
        assert_eq!(path("/a/..", 1), Ok("/a/..0000000001".into()));
        assert_eq!(path("a", 1), Err(Failure::BadArguments));
        assert_eq!(path("/a//", 1), Err(Failure::BadArguments));
        assert_eq!(path("/a/\u{1}", 1), Err(Failure::BadArguments));
        assert_eq!(Place::of("/", false), Err(Failure::Exists));
        assert_eq!(Place::of("/a/", false), Err(Failure::BadArguments));
        assert_eq!(Place::of("/a/b", false).map(|place| place.path(None)), Ok("/a/b".into()));
    }
}
