//! The table of all settings: with `doors`, the one place that names them.

use super::doors;
use super::settings::Config;
use super::values::{Addresses, assign, assign_lasting, assign_positive};
use quorate_doors::DOORS;
use std::sync::LazyLock;

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
    pub set: Set,
    /// Its text form.
    pub show: Show,
}

/// Reads a text into the configuration.
pub type Set = Box<dyn Fn(&mut Config, &str) -> Result<(), String> + Send + Sync>;
/// Shows a value of the configuration.
pub type Show = Box<dyn Fn(&Config) -> String + Send + Sync>;

/// A setting whose place in the configuration has a name.
struct Row {
    path: &'static str,
    shape: Shape,
    doc: &'static str,
    set: fn(&mut Config, &str) -> Result<(), String>,
    show: fn(&Config) -> String,
}

/// The sections in the order they are shown, with what each is about.
pub static SECTIONS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let mut all = vec![("node", String::from("The host itself."))];
    all.extend(DOORS.iter().map(|door| (door.name, format!("The door for {}.", door.clients))));
    all.extend(SECTIONS_AFTER_DOORS.iter().map(|(name, doc)| (*name, (*doc).to_owned())));
    all
});

const SECTIONS_AFTER_DOORS: &[(&str, &str)] = &[
    ("cluster", "The door for the other hosts of the cluster."),
    ("membership", "Who takes part in the cluster."),
    ("http", "The door for HTTP/JSON, health checks, metrics and status."),
    ("grpc", "The door for gRPC clients."),
    ("store", "The store in the data directory."),
    ("limits", "Bounds."),
    ("log", "Log lines, on standard error."),
    ("dev", "What only clusters on one machine want; `quorate dev` sets it."),
];

/// Every setting, grouped by section in the order of [`SECTIONS`].
pub static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let (node, others) = ROWS.split_at(NODE_ROWS);
    let mut all: Vec<Field> = node.iter().map(Field::of).collect();
    all.extend(doors::fields());
    all.extend(others.iter().map(Field::of));
    all
});

/// How many rows the section before those of the doors has.
const NODE_ROWS: usize = 2;

const ROWS: &[Row] = &[
    Row {
        path: "node.data",
        shape: Shape::Text,
        doc: "The data directory of this host, as `quorate init` wrote it.",
        set: |config, text| assign(&mut config.node.data, text),
        show: |config| config.node.data.display().to_string(),
    },
    Row {
        path: "node.insecure",
        shape: Shape::Flag,
        doc: "Whether the doors of clients (HTTP, RESP, gRPC) may be bound to addresses that\n\
              other machines can reach. They have no encryption and no authentication yet:\n\
              whoever can connect can read and write. The cluster door needs no such consent:\n\
              other hosts prove that they know the cluster's secret.",
        set: |config, text| assign(&mut config.node.insecure, text),
        show: |config| config.node.insecure.to_string(),
    },
    Row {
        path: "cluster.bind",
        shape: Shape::Text,
        doc: "Where the other hosts connect.",
        set: |config, text| assign(&mut config.cluster.bind, text),
        show: |config| config.cluster.bind.to_string(),
    },
    Row {
        path: "cluster.addresses",
        shape: Shape::List,
        doc: "Where the hosts of the cluster are found, in the order of their numbers, this one\n\
              included. Empty means the addresses that `quorate init` was given.",
        set: |config, text| assign(&mut config.cluster.addresses, text),
        show: |config| config.cluster.addresses.to_string(),
    },
    Row {
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
    Row {
        path: "cluster.encrypt",
        shape: Shape::Text,
        doc: "Which connections between hosts are encrypted: auto for those that leave the \
              machine,\nalways for all. Of two hosts one that wants it is enough. Both sides prove \
              that they\n\
              know the cluster's secret on every connection, whatever is set here.",
        set: |config, text| assign(&mut config.cluster.encrypt, text),
        show: |config| config.cluster.encrypt.to_string(),
    },
    Row {
        path: "cluster.balance",
        shape: Shape::Flag,
        doc: "Whether this host moves, adds and gives up tokens to even out the load of the ring.\n\
              It works only if every host does.",
        set: |config, text| assign(&mut config.cluster.balance, text),
        show: |config| config.cluster.balance.to_string(),
    },
    Row {
        path: "cluster.balance_every",
        shape: Shape::Text,
        doc: "How often this host looks at the load of all hosts to even it out. One change of\n\
              one host's tokens takes at least two looks.",
        set: |config, text| assign(&mut config.cluster.balance_every, text),
        show: |config| config.cluster.balance_every.to_string(),
    },
    Row {
        path: "cluster.transfer_rate",
        shape: Shape::Text,
        doc: "How many bytes a second this host fetches at most when data moves; 0 is no limit.",
        set: |config, text| assign(&mut config.cluster.transfer_rate, text),
        show: |config| config.cluster.transfer_rate.to_string(),
    },
    Row {
        path: "membership.roll",
        shape: Shape::Text,
        doc: "Who says who may have seats, alike at all hosts: `rapid`, `prime`, or `none`.",
        set: |config, text| assign(&mut config.membership.roll, text),
        show: |config| config.membership.roll.to_string(),
    },
    Row {
        path: "http.bind",
        shape: Shape::Text,
        doc: "Where HTTP/JSON under /v1, /livez, /readyz, /metrics and /status answer.",
        set: |config, text| assign(&mut config.http.bind, text),
        show: |config| config.http.bind.to_string(),
    },
    Row {
        path: "http.hosts",
        shape: Shape::List,
        doc: "The names and addresses by which clients reach this door, besides localhost, where\n\
              it listens, and the hosts of `cluster.advertise` and of the data directory. A\n\
              request for any other is refused: a web page could send it after its own name was\n\
              made to point here.",
        set: |config, text| assign(&mut config.http.hosts, text),
        show: |config| config.http.hosts.to_string(),
    },
    Row {
        path: "grpc.bind",
        shape: Shape::Text,
        doc: "Where gRPC clients connect. Port 0 takes a free port, shown when the host is ready.",
        set: |config, text| assign(&mut config.grpc.bind, text),
        show: |config| config.grpc.bind.to_string(),
    },
    Row {
        path: "grpc.clients_max",
        shape: Shape::Number,
        doc: "The most connections of gRPC clients at once; one more is refused. Fewer if the\n\
              system allows this process too few open files (`ulimit -n`).",
        set: |config, text| assign_positive(&mut config.grpc.clients_max, text),
        show: |config| config.grpc.clients_max.to_string(),
    },
    Row {
        path: "store.cache",
        shape: Shape::Text,
        doc: "The memory for blocks read from the disk.",
        set: |config, text| assign(&mut config.store.cache, text),
        show: |config| config.store.cache.to_string(),
    },
    Row {
        path: "store.record_cache",
        shape: Shape::Text,
        doc: "The memory for records that were written or read before, so that reads meet the\n\
              disk only for what is cold; beside what is not on disk yet and what memory\n\
              keyspaces hold. 0 is a tenth of the machine's memory; `quorate dev` gives each host\n\
              256MiB of it at most.",
        set: |config, text| assign(&mut config.store.record_cache, text),
        show: |config| config.store.record_cache.to_string(),
    },
    Row {
        path: "store.memtable",
        shape: Shape::Text,
        doc: "The size of one memtable, of which up to three are in memory.",
        set: |config, text| assign(&mut config.store.memtable, text),
        show: |config| config.store.memtable.to_string(),
    },
    Row {
        path: "store.log_max",
        shape: Shape::Text,
        doc: "The most disk space for the log. Its segments are made as they are needed, and\n\
              then used again and again; there may be 2 to 64 of them.",
        set: |config, text| assign(&mut config.store.log_max, text),
        show: |config| config.store.log_max.to_string(),
    },
    Row {
        path: "store.log_segment",
        shape: Shape::Text,
        doc: "The size of one segment of the log, 16KiB to 1GiB. Fixed when the directory is\n\
              first opened.",
        set: |config, text| assign(&mut config.store.log_segment, text),
        show: |config| config.store.log_segment.to_string(),
    },
    Row {
        path: "store.worker_threads",
        shape: Shape::Number,
        doc: "The threads that merge tables.",
        set: |config, text| assign_positive(&mut config.store.worker_threads, text),
        show: |config| config.store.worker_threads.to_string(),
    },
    Row {
        path: "store.sync_delay",
        shape: Shape::Text,
        doc: "A delay added to every sync, to see how a slower disk would do. For measurements.",
        set: |config, text| assign(&mut config.store.sync_delay, text),
        show: |config| config.store.sync_delay.to_string(),
    },
    Row {
        path: "limits.request_timeout",
        shape: Shape::Text,
        doc: "When an operation must have been answered; after it the client is told that there\n\
              was no quorum, or that the outcome of its write is unknown.",
        set: |config, text| assign_lasting(&mut config.limits.request_timeout, text),
        show: |config| config.limits.request_timeout.to_string(),
    },
    Row {
        path: "log.level",
        shape: Shape::Text,
        doc: "How much is logged: error, warn, info, debug or trace.",
        set: |config, text| assign(&mut config.log.level, text),
        show: |config| config.log.level.to_string(),
    },
    Row {
        path: "log.format",
        shape: Shape::Text,
        doc: "How lines are written: text, json, or auto for text on a terminal and json\n\
              otherwise.",
        set: |config, text| assign(&mut config.log.format, text),
        show: |config| config.log.format.to_string(),
    },
    Row {
        path: "dev.faults",
        shape: Shape::Flag,
        doc: "Whether `quorate dev ctl` may have this host drop and delay frames.",
        set: |config, text| assign(&mut config.dev.faults, text),
        show: |config| config.dev.faults.to_string(),
    },
];

/// The setting of this path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.path == path)
}

impl Field {
    fn of(row: &Row) -> Field {
        let Row { path, shape, doc, set, show } = *row;
        Field { path, shape, doc, set: Box::new(set), show: Box::new(show) }
    }

    /// What stands before the dot of its path.
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
        for field in FIELDS.iter() {
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
        for field in FIELDS.iter() {
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
            ("limits.request_timeout", "0s"),
            ("log.level", "loud"),
            ("cluster.encrypt", "never"),
            ("cluster.addresses", "a,b"),
            ("cluster.advertise", "h:0"),
            ("cluster.advertise", "0.0.0.0:7411"),
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
