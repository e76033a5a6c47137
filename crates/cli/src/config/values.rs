//! Values as people write them: `"500ms"`, `"64MiB"`, `"127.0.0.1:7413"`.

pub use quorate_gateway::units::{Length, Size};

use clap::builder::{PathBufValueParser, TypedValueParser};
use quorate_kernel::roll::Kind;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

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

/// Names and addresses of hosts without ports, comma-separated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Names, String> {
        let names: Vec<String> =
            text.split(',').map(str::trim).filter(|a| !a.is_empty()).map(str::to_owned).collect();
        let is_one = |name: &str| {
            let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            bare.unwrap_or(name).parse::<IpAddr>().is_ok() || is_name(name)
        };
        match names.iter().find(|name| !is_one(name)) {
            Some(wrong) => {
                Err(format!("expected names or IP addresses of hosts without ports, not {wrong:?}"))
            }
            None => Ok(Names(names)),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Reads a path of the command line that becomes a setting, or is printed for programs. Settings
/// are texts: what is none would be taken for another path.
#[must_use]
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some(_) => Ok(path),
        None => Err("the path is no UTF-8, and settings can name no such path"),
    })
}

/// Reads the text of a setting.
pub(super) fn assign<T>(slot: &mut T, text: &str) -> Result<(), String>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    *slot = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

/// Reads a number that is not zero.
pub(super) fn assign_positive(slot: &mut u32, text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(number @ 1..) => {
            *slot = number;
            Ok(())
        }
        _ => Err(String::from("expected a whole number above zero")),
    }
}

/// Reads a length of time that is not zero.
pub(super) fn assign_lasting(slot: &mut Length, text: &str) -> Result<(), String> {
    let length: Length = text.parse()?;
    if length.0.is_zero() {
        return Err(String::from("expected a length of time above zero"));
    }
    *slot = length;
    Ok(())
}

/// Checks that a text is `HOST:PORT`, where others can connect.
///
/// # Errors
/// A text that says what was expected.
pub fn check_address(text: &str) -> Result<(), String> {
    check_target(text)?;
    match text.parse::<SocketAddr>() {
        Ok(socket) if socket.ip().to_canonical().is_unspecified() => {
            Err(format!("{} is all addresses of a machine, and none to connect to", socket.ip()))
        }
        _ => Ok(()),
    }
}

/// Checks that a text is `HOST:PORT`, where this machine can connect.
///
/// # Errors
/// A text that says what was expected.
pub fn check_target(text: &str) -> Result<(), String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("expected HOST:PORT, not {text:?}"));
    };
    if port.parse() == Ok(0_u16) {
        return Err(format!("port 0 is none where others can connect, in {text:?}"));
    }
    match text.parse::<SocketAddr>() {
        Ok(_) => Ok(()),
        Err(_) if is_name(host) && port.parse::<u16>().is_ok() => Ok(()),
        Err(_) => Err(format!(
            "expected HOST:PORT, where HOST is an IP address or a name of letters, digits, '-', \
             '_' and dots, not {text:?}"
        )),
    }
}

/// Whether a text may be the name of a machine. One of numbers alone is an IPv4 address, or half of
/// one, to the system.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    let is_number = |part: &str| match part.to_ascii_lowercase().strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|it| it.is_ascii_hexdigit()),
        None => part.bytes().all(|it| it.is_ascii_digit()),
    };
    let mut parts = text.strip_suffix('.').unwrap_or(text).split('.');
    parts.clone().all(is_part) && !parts.all(is_number)
}

/// Whether a checked address leads to no other machine.
#[must_use]
pub fn is_loopback(address: &str) -> bool {
    match address.parse::<SocketAddr>() {
        Ok(socket) => socket.ip().to_canonical().is_loopback(),
        Err(_) => address.rsplit_once(':').is_some_and(|(name, _)| is_localhost(name)),
    }
}

/// Whether this name is every machine's own.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case("localhost")
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
/// Who says who takes part in the cluster, for the seats of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollKind {
    /// Nobody: seats follow what each host's failure detector says.
    None,
    /// All hosts together: a majority of them agrees, by Rapid.
    Rapid,
    /// All hosts together, by reports that are ordered with high probability: PRIME.
    Prime,
}

impl RollKind {
    /// How the roll is kept, if one is.
    #[must_use]
    pub fn kept(self) -> Option<Kind> {
        match self {
            RollKind::None => None,
            RollKind::Rapid => Some(Kind::Rapid),
            RollKind::Prime => Some(Kind::Prime),
        }
    }
}

words!(RollKind: "expected `none`, `rapid` or `prime`" {
    None = "none", Rapid = "rapid", Prime = "prime",
});
words!(LogFormat: "expected `auto`, `text` or `json`" {
    Auto = "auto", Text = "text", Json = "json",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_host_and_a_port() {
        for good in
            ["127.0.0.1:1", "[::1]:7411", "kv-1.example:7411", "kv_1.x.:65535", "4a:1", "kv.1:1"]
        {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in ["127.0.0.1", ":7411", "host:", "host:70000", "::1:7411", ""] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
        // What would be taken for a name, or leads nowhere.
        for bad in ["10.0.0.1,10.0.0.2:7411", "10.0.0.256:1", "0x7f.1:1", "my host:1", "a/b:1"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
        for bad in ["x\"y:1", "a..b:1", ".:1", "7:1", "h:0", "127.0.0.1:0", "0.0.0.0:1", "[::]:1"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
        let list: Addresses = " a:1, b:2 ,".parse().expect("a list");
        assert_eq!(list.to_string(), "a:1,b:2");
        assert!("a:1,b".parse::<Addresses>().is_err());
    }

    #[test]
    fn names_come_without_ports() {
        for good in ["quorate.example,db", "192.168.1.10", "2001:db8::4,[fd00::1]"] {
            assert_eq!(good.parse::<Names>().map(|names| names.to_string()), Ok(good.to_owned()));
        }
        for bad in ["a:1", "[fd00::1]:7412", "192.168.1.256", "a b", "[a]"] {
            assert!(bad.parse::<Names>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_that_lead_to_no_other_machine_are_known() {
        for own in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "LocalHost:1"]
        {
            assert!(is_loopback(own), "{own}");
        }
        for other in ["10.0.0.1:1", "[fd00::1]:1", "localhost.example:1", "kv-1:1"] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
