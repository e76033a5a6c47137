//! Exit codes, and how a command fails.

use crate::config::ConfigError;
use quorate_bench::BenchError;
use quorate_host::HostError;
use quorate_host::proof::secret::SecretError;
use quorate_kernel::error::Fatal;
use quorate_store::DirectoryError;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $meaning:literal;)*) => {
        /// What the process tells whoever started it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Code { $($(#[$doc])* $name = $number,)* }

        impl Code {
            /// Every code with what it means.
            pub const ALL: &[(Code, &str)] = &[$((Code::$name, $meaning),)*];
        }
    };
}

codes! {
    /// Done.
    Ok = 0, "done";
    /// It failed for a reason that has no code of its own.
    Failed = 1, "the operation failed, or `check` could not decide";
    /// The command line is wrong.
    Usage = 2, "the command line is wrong; nothing was done";
    /// The key is absent.
    NotFound = 3, "the key or the keyspace does not exist";
    /// Nobody answered for a quorum, or no host at all.
    NoQuorum = 5, "no host or no quorum could be reached; nothing was changed";
    /// The time was up.
    Timeout = 6, "the time was up; a write may have been applied";
    /// A check found what it looks for.
    CheckFailed = 8, "a check failed: a violation was found, or the configuration is wrong";
    /// Stored bytes cannot be trusted, or a newer release wrote them.
    Corrupt = 9, "data is damaged, a copy, or outdated, or its format is newer than this release";
    /// The host is no part of its cluster any more.
    Removed = 10, "the host was removed from its cluster";
    /// The user stopped it.
    Interrupted = 130, "interrupted";
}

/// The table of exit codes as text.
#[must_use]
pub fn table() -> String {
    Code::ALL.iter().map(|(code, meaning)| format!("{:>5}  {meaning}\n", *code as u8)).collect()
}

/// The end of a command line: an error is told on standard error, and its code is the process's.
pub fn end(result: Result<(), Failure>) -> ExitCode {
    let code = match result {
        Ok(()) => Code::Ok,
        Err(Failure { code, message }) => {
            if !message.is_empty() {
                // Nobody may listen.
                let _ = writeln!(io::stderr(), "error: {message}");
            }
            code
        }
    };
    ExitCode::from(code as u8)
}

/// Why a command failed: what the user is told, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What the user is told; empty if everything was said already.
    pub message: String,
}

impl Failure {
    /// A failure with this code.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// A failure without a code of its own.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Code::Failed, message)
    }

    /// A failure to talk to a host at this address.
    #[must_use]
    pub fn of_connection(address: &str, error: &io::Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Code::Timeout,
            ErrorKind::InvalidInput | ErrorKind::InvalidData => Code::Failed,
            _ => Code::NoQuorum,
        };
        Failure::new(code, format!("{address}: {error}"))
    }

    /// A failure a host answered, by the first word of its error.
    #[must_use]
    pub fn of_reply(text: &str) -> Failure {
        let code = match text.split(' ').next() {
            Some("NOQUORUM" | "LOADING" | "CLUSTERDOWN") => Code::NoQuorum,
            Some("UNKNOWNOUTCOME") => Code::Timeout,
            // It has reached no other host yet, and cannot say whether a keyspace is there.
            _ if text.starts_with("ERR the host is starting") => Code::NoQuorum,
            _ => Code::Failed,
        };
        Failure::new(code, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A failure to write the output. Whoever closed the pipe, as `head` does, knows enough.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let is_closed = error.kind() == ErrorKind::BrokenPipe;
        Failure::failed(if is_closed { String::new() } else { error.to_string() })
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::new(Code::CheckFailed, error.to_string())
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Failure {
        let code = match error {
            DirectoryError::NewerFormat { .. }
            | DirectoryError::Damaged { .. }
            | DirectoryError::Wiped { .. }
            | DirectoryError::Copied { .. }
            | DirectoryError::WritesMissing { .. } => Code::Corrupt,
            _ => Code::Failed,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        match error {
            HostError::Directory(error) => error.into(),
            HostError::Removed { .. } => Failure::new(Code::Removed, error.to_string()),
            HostError::Disowned { .. } | HostError::Fatal(Fatal::Corrupt(_)) => {
                Failure::new(Code::Corrupt, error.to_string())
            }
            _ => Failure::failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn replies_map_to_codes_by_their_first_word() {
        let code = |text| Failure::of_reply(text).code;
        assert_eq!(code("NOQUORUM 1 of 2 replicas"), Code::NoQuorum);
        assert_eq!(code("UNKNOWNOUTCOME the deadline passed"), Code::Timeout);
        assert_eq!(code("ERR wrong number of arguments"), Code::Failed);
        assert_eq!(code("ERR the host is starting and does not know"), Code::NoQuorum);
        assert_eq!(code("NOQUORUMS"), Code::Failed);
        assert_eq!(code(""), Code::Failed);
    }

    #[test]
    fn silence_is_told_from_absence() {
        let code = |kind: ErrorKind| Failure::of_connection("a:1", &kind.into()).code;
        assert_eq!(code(ErrorKind::ConnectionRefused), Code::NoQuorum);
        assert_eq!(code(ErrorKind::TimedOut), Code::Timeout);
        assert_eq!(code(ErrorKind::WouldBlock), Code::Timeout);
        assert_eq!(code(ErrorKind::UnexpectedEof), Code::NoQuorum);
        assert_eq!(code(ErrorKind::InvalidData), Code::Failed);
    }

    #[test]
    fn damage_has_its_own_code() {
        let path = PathBuf::from("d");
        let damaged = DirectoryError::Damaged { path: path.clone(), what: String::from("torn") };
        assert_eq!(Failure::from(damaged).code, Code::Corrupt);
        let absent = DirectoryError::NotInitialised { path };
        assert_eq!(Failure::from(HostError::from(absent)).code, Code::Failed);
        let corrupt = HostError::Fatal(Fatal::Corrupt(String::from("x")));
        assert_eq!(Failure::from(corrupt).code, Code::Corrupt);
    }

    #[test]
    fn the_table_names_every_code() {
        let table = table();
        for number in ["0", "1", "2", "3", "5", "6", "8", "9", "10", "130"] {
            assert!(table.lines().any(|l| l.split_whitespace().next() == Some(number)), "{number}");
        }
        assert_eq!(table.lines().count(), 10);
    }
}
