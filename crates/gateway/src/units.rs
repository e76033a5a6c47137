//! Lengths of time, sizes and settings as people write them: `"500ms"`, `"64MiB"`.

use quorate_kernel::keyspace::Settings;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, written as a whole number and a unit: `us`, `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub Duration);

const LENGTHS: &[(&str, u64)] =
    &[("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

impl FromStr for Length {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Length, &'static str> {
        const EXPECTED: &str = "expected a length of time such as \"500ms\", \"5s\" or \"1m\"";
        let (number, unit) = split(text);
        let micros = LENGTHS.iter().find(|(name, _)| *name == unit).map(|(_, micros)| *micros);
        // Nothing without a unit but zero: "5" could be seconds or milliseconds.
        let micros = if number == "0" && unit.is_empty() { Some(1) } else { micros };
        let count: u64 = number.parse().map_err(|_| EXPECTED)?;
        let total = count.checked_mul(micros.ok_or(EXPECTED)?).ok_or(EXPECTED)?;
        Ok(Length(Duration::from_micros(total)))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        let (unit, micros) = LENGTHS
            .iter()
            .copied()
            .find(|(_, micros)| total >= *micros && total.is_multiple_of(*micros))
            .unwrap_or(("s", 1_000_000));
        write!(f, "{}{unit}", total / micros)
    }
}

/// A number of bytes, written plain or with `KiB`, `MiB`, `GiB` or the decimal `kB`, `MB`, `GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const SIZES: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
    ("", 1),
];

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Size, &'static str> {
        const EXPECTED: &str = "expected a size such as \"64MiB\", \"512KiB\" or \"1GiB\"";
        let (number, unit) = split(text);
        let bytes = SIZES.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes);
        let count: u64 = number.parse().map_err(|_| EXPECTED)?;
        count.checked_mul(bytes.ok_or(EXPECTED)?).map(Size).ok_or(EXPECTED)
    }
}

impl Size {
    /// About how much it is, in the largest unit that it has one of.
    #[must_use]
    pub fn about(self) -> String {
        let found = SIZES[..3].iter().find(|(_, bytes)| self.0 >= *bytes);
        let in_unit =
            |(unit, bytes): &(&str, u64)| format!("{:.1}{unit}", self.0 as f64 / *bytes as f64);
        found.map_or_else(|| self.to_string(), in_unit)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, bytes) = SIZES[..3]
            .iter()
            .copied()
            .find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes))
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

fn split(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..digits], text[digits..].trim())
}

/// Settings as the catalog takes them from those that a person has written: lengths may have a
/// unit. What each may be is the catalog's business.
pub fn spelt(written: impl IntoIterator<Item = (String, String)>) -> Settings {
    let one = |(name, text): (String, String)| {
        let size = text.parse::<Size>().ok().filter(|_| name == "value");
        (name, size.map_or(text, |Size(bytes)| bytes.to_string()))
    };
    written.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_what_they_print() {
        for text in ["500ms", "5s", "1m", "2h", "150us", "1500ms", "0s"] {
            assert_eq!(text.parse::<Length>().map(|l| l.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("0".parse(), Ok(Length(Duration::ZERO)));
        assert_eq!("60s".parse::<Length>().map(|l| l.to_string()), Ok("1m".to_owned()));
        for text in ["5", "", "s", "-1s", "1.5s", "5 days", "99999999999999999h"] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_read_what_they_print() {
        for text in ["64MiB", "1GiB", "512KiB", "100B", "0B"] {
            assert_eq!(text.parse::<Size>().map(|s| s.to_string()), Ok(text.to_owned()));
        }
        for (bytes, text) in [(0, "0B"), (1023, "1023B"), (1024, "1.0KiB"), (3 << 29, "1.5GiB")] {
            assert_eq!(Size(bytes).about(), text);
        }
        assert_eq!("1024".parse(), Ok(Size(1024)));
        assert_eq!("2 MB".parse(), Ok(Size(2_000_000)));
        for text in ["", "MiB", "1.5GiB", "64mib", "99999999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
