//! `dev ctl`: steers a cluster that `dev` runs, over a socket in its data directory.

use super::cuts::HostList;
use crate::config::values::Length;
use crate::exit::{Code, Failure};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Write, stdout};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The socket's name in the data directory of the cluster.
pub const SOCKET: &str = "ctl.sock";

/// The arguments of `dev ctl`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Hosts are meant by their numbers. Frames are dropped and delayed inside \
                        the hosts, so nothing needs to be root; clients are not cut off.\n\n\
                        Example: quorate dev ctl partition 1 2,3")]
pub struct CtlArgs {
    /// The data directory that `dev` was given
    #[arg(long, default_value = "quorate-data", value_name = "DIR", global = true)]
    data: PathBuf,
    #[command(subcommand)]
    order: Order,
}

/// What a running cluster can be told.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand, Serialize, Deserialize)]
pub enum Order {
    /// Start a new host, which joins
    Add,
    /// Kill a host, without any chance to finish something
    Kill {
        /// Its number
        host: u32,
    },
    /// Stop a host's process where it is, as a very long pause would
    Freeze {
        /// Its number
        host: u32,
    },
    /// Let a frozen host go on
    Thaw {
        /// Its number
        host: u32,
    },
    /// Start a host again that has ended
    Start {
        /// Its number
        host: u32,
    },
    /// Have a host hand over all it holds
    Drain {
        /// Its number
        host: u32,
    },
    /// Drop all frames between two sides
    Partition {
        /// The one side, such as 1
        one: HostList,
        /// The other side, such as 2,3
        other: HostList,
    },
    /// Drop all frames of one host to another
    Oneway {
        /// Who sends
        from: u32,
        /// Who does not receive
        to: u32,
    },
    /// Delay all frames between two hosts, each way
    Delay {
        /// The one host
        one: u32,
        /// The other host
        other: u32,
        /// How long, such as 50ms; 0 for no longer
        #[arg(value_parser = millis)]
        millis: u64,
    },
    /// Drop and delay nothing any more
    Heal,
}

fn millis(text: &str) -> Result<u64, String> {
    let length: Length = text.parse()?;
    u64::try_from(length.0.as_millis()).map_err(|_| String::from("that is too long"))
}

/// What the cluster says to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Whether it was done.
    pub is_done: bool,
    /// What was done, or why not.
    pub text: String,
}

/// Runs `dev ctl`.
///
/// # Errors
/// No cluster runs there, or it cannot do what it was told.
pub fn run(args: &CtlArgs) -> Result<(), Failure> {
    let said = tell(&args.data, &args.order)?;
    if !said.is_done {
        return Err(Failure::failed(said.text));
    }
    writeln!(stdout(), "{}", said.text)?;
    Ok(())
}

/// Gives an order to the cluster of a data directory.
///
/// # Errors
/// No cluster runs there.
pub fn tell(data: &Path, order: &Order) -> Result<Said, Failure> {
    let path = data.join(SOCKET);
    let mut stream = UnixStream::connect(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(
            Code::NoQuorum,
            format!(
                "no cluster of `quorate dev` runs in {}; start one, or say where with --data",
                data.display()
            ),
        ),
        _ => Failure::failed(format!("{}: {error}", path.display())),
    })?;
    let line = serde_json::to_string(order).expect("an order has only words and numbers");
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    serde_json::from_str(&answer)
        .map_err(|_| Failure::failed(String::from("the cluster ended before it answered")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        order: Order,
    }

    #[test]
    fn orders_are_read_from_words_and_survive_the_socket() {
        let read = |words: &[&str]| {
            let line = Line::try_parse_from([&["ctl"], words].concat());
            line.map(|line| line.order).ok()
        };
        assert_eq!(read(&["kill", "2"]), Some(Order::Kill { host: 2 }));
        let delay = Order::Delay { one: 1, other: 2, millis: 50 };
        assert_eq!(read(&["delay", "1", "2", "50ms"]), Some(delay));
        let partition = read(&["partition", "1", "2,3"]).expect("two sides");
        let text = serde_json::to_string(&partition).expect("words and numbers");
        assert_eq!(serde_json::from_str::<Order>(&text).expect("its own form"), partition);
        for bad in [&["kill"][..], &["partition", "1", "2,x"], &["delay", "1", "2", "long"]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
