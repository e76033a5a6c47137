//! Which paths there can be: ZooKeeper's rules.

/// Whether a node can be at this path.
pub(crate) fn is_valid(path: &str) -> bool {
    let Some(names) = path.strip_prefix('/') else { return false };
    names.is_empty() || names.split('/').all(is_name) && !names.contains(is_forbidden)
}

/// Whether a node whose name ends with a number can be at this path: it may have no name but that.
pub(crate) fn is_valid_before_number(path: &str) -> bool {
    let Some((parent, name)) = path.rsplit_once('/') else { return false };
    let has_parent = parent.is_empty() || parent.len() > 1 && is_valid(parent);
    has_parent && !name.contains(is_forbidden)
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
}

/// Controls, what is for private use, what is beyond 16 bits, and specials. U+FFFD is among the
/// last, so what was no UTF-8 is never a path.
fn is_forbidden(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_have_names_without_controls() {
        for path in ["/", "/a", "/a/b", "/.a", "/a.", "/...", "/..a/b", "/ü", "/a b", "/\u{ffef}"]
        {
            assert!(is_valid(path), "{path}");
        }
        let bad = ["", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/a/.."];
        let controls = ["/\0", "/a\u{1f}", "/\u{7f}", "/\u{9f}b", "/\u{e000}", "/\u{f8ff}"];
        let wide = ["/\u{fff0}", "/\u{fffd}", "/\u{10000}", "/😀"];
        for path in bad.into_iter().chain(controls).chain(wide) {
            assert!(!is_valid(path), "{path:?}");
        }
    }

    #[test]
    fn a_number_may_be_the_whole_name() {
        for path in ["/", "/a/", "/a/b", "/.", "/..", "/a/..", "/n-"] {
            assert!(is_valid_before_number(path), "{path}");
        }
        for path in ["", "a", "//", "/a//", "/./a", "/a/../b", "/a/\0", "/\u{1f}/a"] {
            assert!(!is_valid_before_number(path), "{path:?}");
        }
    }
}
