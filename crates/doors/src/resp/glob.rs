//! Patterns of `KEYS`, `SCAN MATCH`, `CONFIG GET` and `COMMAND LIST`.

use super::error::CommandError;

/// The longest pattern: all of it may be looked at for each byte of each text.
const PATTERN_BYTES_MAX: usize = 1024;

/// Refuses a pattern that would take long.
pub(crate) fn check(pattern: &[u8]) -> Result<(), CommandError> {
    let (what, length, limit) = ("pattern", pattern.len(), PATTERN_BYTES_MAX);
    match length > limit {
        true => Err(CommandError::TooLarge { what, length, limit }),
        false => Ok(()),
    }
}

/// Whether all of `text` matches `pattern`: `*`, `?`, `[abc]`, `[^a-z]` and `\` before a byte, as
/// in Redis, an unclosed class included. Takes at most the product of both lengths in steps,
/// because only the last star is ever tried again.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut retry = None;
    loop {
        let step = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, read));
                continue;
            }
            Some(_) => text.get(read).and_then(|byte| one(&pattern[at..], *byte)),
            None if read == text.len() => return true,
            None => None,
        };
        match (step, retry) {
            (Some(used), _) => {
                at += used;
                read += 1;
            }
            (None, Some((star, from))) if from < text.len() => {
                at = star;
                read = from + 1;
                retry = Some((star, read));
            }
            (None, _) => return false,
        }
    }
}

/// How many bytes of the pattern match this one byte; `None` if they do not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern[0] {
        b'?' => Some(1),
        b'[' => class(pattern, byte),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        other => (other == byte).then_some(1),
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = pattern.get(1) == Some(&b'^');
    let mut at = 1 + usize::from(negated);
    let mut found = false;
    loop {
        match &pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                let (low, high) = if low <= high { (low, high) } else { (high, low) };
                found |= (*low..=*high).contains(&byte);
                at += 3;
            }
            [single, ..] => {
                found |= *single == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let table: &[(&str, &str, bool)] = &[
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hello!", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("[a", "b", false),
            ("[]", "a", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("**?", "", false),
            ("a*?", "ab", true),
        ];
        for (pattern, text, expected) in table {
            let got = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(got, *expected, "{pattern:?} against {text:?}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"a*".repeat(1000);
        let text = [b'a'; 20_000];
        assert!(!matches(&[&pattern[..], b"b"].concat(), &text));
    }
}
