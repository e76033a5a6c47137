//! Values as people write them: `"500ms"`, `"64MiB"`, `"127.0.0.1:7413"`.

use std::fmt;
use std::net::SocketAddr;
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

/// Addresses as texts, comma-separated. Names are resolved when they are used, not when read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(pub Vec<String>);

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Addresses, String> {
        let addresses: Vec<String> =
            text.split(',').map(str::trim).filter(|a| !a.is_empty()).map(str::to_owned).collect();
        for address in &addresses {
            check_address(address)?;
        }
        Ok(Addresses(addresses))
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Names of hosts without ports, comma-separated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Names, String> {
        let names: Vec<String> =
            text.split(',').map(str::trim).filter(|a| !a.is_empty()).map(str::to_owned).collect();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        match names.iter().find(|name| !name.chars().all(is_name)) {
            Some(wrong) => Err(format!("expected names of hosts without ports, not {wrong:?}")),
            None => Ok(Names(names)),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Checks that a text is `HOST:PORT`.
///
/// # Errors
/// A text that says what was expected.
pub fn check_address(text: &str) -> Result<(), String> {
    let valid = text.parse::<SocketAddr>().is_ok()
        || text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(':') && port.parse::<u16>().is_ok()
        });
    if valid { Ok(()) } else { Err(format!("expected HOST:PORT, not {text:?}")) }
}

/// Which connections between hosts are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encrypt {
    /// Those that leave the machine.
    Auto,
    /// All.
    Always,
}

impl FromStr for Encrypt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Encrypt, &'static str> {
        match text {
            "auto" => Ok(Encrypt::Auto),
            "always" => Ok(Encrypt::Always),
            _ => Err("expected auto or always"),
        }
    }
}

impl fmt::Display for Encrypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encrypt::Auto => "auto",
            Encrypt::Always => "always",
        })
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// What an operator must look at and cannot wait.
    Error,
    /// What an operator must look at.
    Warn,
    /// Notable events of normal life.
    Info,
    /// What helps to understand a fault.
    Debug,
    /// Everything.
    Trace,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// As text on a terminal, as JSON otherwise.
    Auto,
    /// As text.
    Text,
    /// As one JSON object a line.
    Json,
}

macro_rules! words {
    ($name:ident: $expected:literal { $($value:ident = $text:literal,)* }) => {
        impl FromStr for $name {
            type Err = &'static str;
            fn from_str(text: &str) -> Result<$name, &'static str> {
                match text {
                    $($text => Ok($name::$value),)*
                    _ => Err($expected),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$value => $text,)* })
            }
        }
    };
}

words!(LogLevel: "expected `error`, `warn`, `info`, `debug` or `trace`" {
    Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace",
});
words!(LogFormat: "expected `auto`, `text` or `json`" {
    Auto = "auto", Text = "text", Json = "json",
});

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
        assert_eq!("1024".parse(), Ok(Size(1024)));
        assert_eq!("2 MB".parse(), Ok(Size(2_000_000)));
        for text in ["", "MiB", "1.5GiB", "64mib", "99999999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_need_a_host_and_a_port() {
        for good in ["127.0.0.1:0", "[::1]:7411", "kv-1.example:7411"] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in ["127.0.0.1", ":7411", "host:", "host:70000", "::1:7411", ""] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
        let list: Addresses = " a:1, b:2 ,".parse().expect("a list");
        assert_eq!(list.to_string(), "a:1,b:2");
        assert!("a:1,b".parse::<Addresses>().is_err());
    }
}
