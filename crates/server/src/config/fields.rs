//! The table of all settings: the one place that names them.

use super::settings::Config;
use super::values::Addresses;
use std::fmt::Display;
use std::str::FromStr;

/// How a setting is written in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As a quoted string.
    Text,
    /// As a whole number.
    Number,
    /// As `true` or `false`.
    Flag,
    /// As an array of strings.
    List,
}

/// One setting.
pub struct Field {
    /// `section.name`.
    pub path: &'static str,
    /// How it is written.
    pub shape: Shape,
    /// What it means, in sentences.
    pub doc: &'static str,
    /// Reads its text form into the configuration.
    pub set: fn(&mut Config, &str) -> Result<(), String>,
    /// Its text form.
    pub show: fn(&Config) -> String,
}

/// The sections in the order they are shown, with what each is about.
pub const SECTIONS: &[(&str, &str)] = &[
    ("node", "The host itself."),
    ("resp", "The door for Redis clients."),
    ("cluster", "The door for the other hosts of the cluster."),
    ("http", "The door for HTTP/JSON, health checks, metrics and status."),
    ("grpc", "The door for gRPC clients."),
    ("store", "The store in the data directory."),
    ("limits", "Bounds."),
    ("log", "Log lines, on standard error."),
    ("dev", "What only clusters on one machine want; `quorate dev` sets it."),
];

/// Every setting, grouped by section in the order of [`SECTIONS`].
pub const FIELDS: &[Field] = &[
    Field {
        path: "node.data",
        shape: Shape::Text,
        doc: "The data directory of this host, as `quorate init` wrote it.",
        set: |config, text| assign(&mut config.node.data, text),
        show: |config| config.node.data.display().to_string(),
    },
    Field {
        path: "node.insecure",
        shape: Shape::Flag,
        doc: "Whether doors may be bound to addresses that other machines can reach. There is no\n\
              encryption and no authentication yet: whoever can connect can read and write.",
        set: |config, text| assign(&mut config.node.insecure, text),
        show: |config| config.node.insecure.to_string(),
    },
    Field {
        path: "resp.bind",
        shape: Shape::Text,
        doc: "Where Redis clients connect. Port 0 takes a free port, shown when the host is ready.",
        set: |config, text| assign(&mut config.resp.bind, text),
        show: |config| config.resp.bind.to_string(),
    },
    Field {
        path: "resp.clients_max",
        shape: Shape::Number,
        doc: "The most clients connected at once; one more is told so and closed. Fewer if the\n\
              system allows this process too few open files (`ulimit -n`).",
        set: |config, text| assign_positive(&mut config.resp.clients_max, text),
        show: |config| config.resp.clients_max.to_string(),
    },
    Field {
        path: "resp.memory_max",
        shape: Shape::Text,
        doc: "The memory that all clients may take together: commands that have begun to arrive\n\
              or are not answered, and replies that are not taken. A command for which there is\n\
              no room is refused before it is read. 0 is a quarter of the machine's memory.",
        set: |config, text| assign(&mut config.resp.memory_max, text),
        show: |config| config.resp.memory_max.to_string(),
    },
    Field {
        path: "cluster.bind",
        shape: Shape::Text,
        doc: "Where the other hosts connect.",
        set: |config, text| assign(&mut config.cluster.bind, text),
        show: |config| config.cluster.bind.to_string(),
    },
    Field {
        path: "cluster.addresses",
        shape: Shape::List,
        doc: "Where the hosts of the cluster are found, in the order of their numbers, this one\n\
              included. Empty means the addresses that `quorate init` was given.",
        set: |config, text| assign(&mut config.cluster.addresses, text),
        show: |config| config.cluster.addresses.to_string(),
    },
    Field {
        path: "cluster.advertise",
        shape: Shape::List,
        doc: "Where the other hosts find this one, if it moved since its directory was made. They\n\
              hear of it by gossip. One address, or none for what the directory says.",
        set: |config, text| {
            let addresses: Addresses = text.parse()?;
            match addresses.0.len() {
                0 | 1 => config.cluster.advertise = addresses,
                count => return Err(format!("expected one address, not {count}")),
            }
            Ok(())
        },
        show: |config| config.cluster.advertise.to_string(),
    },
    Field {
        path: "cluster.encrypt",
        shape: Shape::Text,
        doc: "Which connections between hosts are encrypted: auto for those that leave the \
              machine,\nalways for all. Of two hosts one that wants it is enough. Both sides prove \
              that they\n\
              know the cluster's secret on every connection, whatever is set here.",
        set: |config, text| assign(&mut config.cluster.encrypt, text),
        show: |config| config.cluster.encrypt.to_string(),
    },
    Field {
        path: "cluster.balance",
        shape: Shape::Flag,
        doc: "Whether this host moves, adds and gives up tokens to even out the load of the ring.\n\
              It works only if every host does.",
        set: |config, text| assign(&mut config.cluster.balance, text),
        show: |config| config.cluster.balance.to_string(),
    },
    Field {
        path: "cluster.balance_every",
        shape: Shape::Text,
        doc: "How often this host looks at the load of all hosts to even it out. One change of\n\
              one host's tokens takes at least two looks.",
        set: |config, text| assign(&mut config.cluster.balance_every, text),
        show: |config| config.cluster.balance_every.to_string(),
    },
    Field {
        path: "cluster.transfer_rate",
        shape: Shape::Text,
        doc: "How many bytes a second this host fetches at most when data moves; 0 is no limit.",
        set: |config, text| assign(&mut config.cluster.transfer_rate, text),
        show: |config| config.cluster.transfer_rate.to_string(),
    },
    Field {
        path: "http.bind",
        shape: Shape::Text,
        doc: "Where HTTP/JSON under /v1, /livez, /readyz, /metrics and /status answer.",
        set: |config, text| assign(&mut config.http.bind, text),
        show: |config| config.http.bind.to_string(),
    },
    Field {
        path: "http.hosts",
        shape: Shape::List,
        doc: "The names by which clients reach this door, besides localhost, its own addresses\n\
              and those of `cluster.advertise` and of the data directory. A request for any other\n\
              name is refused: a web page could send it after its own name was made to\n\
              point here.",
        set: |config, text| assign(&mut config.http.hosts, text),
        show: |config| config.http.hosts.to_string(),
    },
    Field {
        path: "grpc.bind",
        shape: Shape::Text,
        doc: "Where gRPC clients connect. Port 0 takes a free port, shown when the host is ready.",
        set: |config, text| assign(&mut config.grpc.bind, text),
        show: |config| config.grpc.bind.to_string(),
    },
    Field {
        path: "grpc.clients_max",
        shape: Shape::Number,
        doc: "The most connections of gRPC clients at once; one more is refused. Fewer if the\n\
              system allows this process too few open files (`ulimit -n`).",
        set: |config, text| assign_positive(&mut config.grpc.clients_max, text),
        show: |config| config.grpc.clients_max.to_string(),
    },
    Field {
        path: "store.cache",
        shape: Shape::Text,
        doc: "The memory for blocks read from the disk.",
        set: |config, text| assign(&mut config.store.cache, text),
        show: |config| config.store.cache.to_string(),
    },
    Field {
        path: "store.memtable",
        shape: Shape::Text,
        doc: "The size of one memtable, of which up to four are in memory. Fixed when the\n\
              directory is first opened.",
        set: |config, text| assign(&mut config.store.memtable, text),
        show: |config| config.store.memtable.to_string(),
    },
    Field {
        path: "store.journal_max",
        shape: Shape::Text,
        doc: "The disk space for journals, at least 64MiB.",
        set: |config, text| assign(&mut config.store.journal_max, text),
        show: |config| config.store.journal_max.to_string(),
    },
    Field {
        path: "store.worker_threads",
        shape: Shape::Number,
        doc: "The threads that write and merge tables.",
        set: |config, text| assign_positive(&mut config.store.worker_threads, text),
        show: |config| config.store.worker_threads.to_string(),
    },
    Field {
        path: "store.sync_delay",
        shape: Shape::Text,
        doc: "A delay added to every sync, to see how a slower disk would do. For measurements.",
        set: |config, text| assign(&mut config.store.sync_delay, text),
        show: |config| config.store.sync_delay.to_string(),
    },
    Field {
        path: "limits.request_timeout",
        shape: Shape::Text,
        doc: "When an operation must have been answered; after it the client is told that there\n\
              was no quorum, or that the outcome of its write is unknown.",
        set: |config, text| assign(&mut config.limits.request_timeout, text),
        show: |config| config.limits.request_timeout.to_string(),
    },
    Field {
        path: "log.level",
        shape: Shape::Text,
        doc: "How much is logged: error, warn, info, debug or trace.",
        set: |config, text| assign(&mut config.log.level, text),
        show: |config| config.log.level.to_string(),
    },
    Field {
        path: "log.format",
        shape: Shape::Text,
        doc: "How lines are written: text, json, or auto for text on a terminal and json\n\
              otherwise.",
        set: |config, text| assign(&mut config.log.format, text),
        show: |config| config.log.format.to_string(),
    },
    Field {
        path: "dev.faults",
        shape: Shape::Flag,
        doc: "Whether `quorate dev ctl` may have this host drop and delay frames.",
        set: |config, text| assign(&mut config.dev.faults, text),
        show: |config| config.dev.faults.to_string(),
    },
    Field {
        path: "dev.unsafe_static_views",
        shape: Shape::Flag,
        doc: "Whether this host serves keyspaces without consistent quorums, which lose and bring\n\
              back writes when hosts come, go or fail. `quorate-lab` makes such keyspaces to\n\
              measure what consistent quorums cost, and sets this itself; never set it.",
        set: |config, text| assign(&mut config.dev.unsafe_static_views, text),
        show: |config| config.dev.unsafe_static_views.to_string(),
    },
];

fn assign<T>(slot: &mut T, text: &str) -> Result<(), String>
where
    T: FromStr,
    T::Err: Display,
{
    *slot = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

fn assign_positive(slot: &mut u32, text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(number @ 1..) => {
            *slot = number;
            Ok(())
        }
        _ => Err(String::from("expected a whole number above zero")),
    }
}

/// The setting of this path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.path == path)
}

impl Field {
    /// The section it is in.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.path.split_once('.').expect("every path has a section").0
    }

    /// Its name within the section.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.split_once('.').expect("every path has a section").1
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("QUORATE_{}__{}", self.section(), self.name()).to_uppercase()
    }

    /// Its value as TOML.
    #[must_use]
    pub fn toml(&self, config: &Config) -> String {
        let text = (self.show)(config);
        match self.shape {
            Shape::Text => toml::Value::String(text).to_string(),
            Shape::Number | Shape::Flag => text,
            Shape::List => {
                let items = text.split(',').filter(|item| !item.is_empty());
                toml::Value::Array(items.map(toml::Value::from).collect()).to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_reads_what_it_shows() {
        for field in FIELDS {
            let default = Config::default();
            let mut config = Config::default();
            let text = (field.show)(&default);
            (field.set)(&mut config, &text).expect("its own text form");
            assert_eq!(config, default, "{}", field.path);
        }
    }

    #[test]
    fn fields_are_grouped_by_section_and_named_once() {
        let sections: Vec<&str> = FIELDS.iter().map(Field::section).collect();
        let mut order = sections.clone();
        order.dedup();
        assert_eq!(order, SECTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for field in FIELDS {
            assert_eq!(FIELDS.iter().filter(|other| other.path == field.path).count(), 1);
        }
        assert_eq!(FIELDS[3].variable(), "QUORATE_RESP__CLIENTS_MAX");
    }

    #[test]
    fn bad_values_are_refused() {
        let bad = [
            ("resp.bind", "here"),
            ("resp.clients_max", "0"),
            ("node.insecure", "yes"),
            ("store.cache", "much"),
            ("limits.request_timeout", "5"),
            ("log.level", "loud"),
            ("cluster.encrypt", "never"),
            ("cluster.addresses", "a,b"),
            ("http.hosts", "a:1"),
        ];
        for (path, text) in bad {
            let field = find(path).expect("a field");
            let mut config = Config::default();
            assert!((field.set)(&mut config, text).is_err(), "{path} = {text}");
            assert_eq!(config, Config::default(), "nothing is changed by a refused value");
        }
    }
}
