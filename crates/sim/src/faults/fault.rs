//! Faults as data: a plan is a list that can be drawn, written down, reduced and replayed.

use crate::queue::HostIndex;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that goes wrong, when, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// When it begins, in microseconds.
    pub at_us: u64,
    /// How long it lasts, in microseconds; a fault without duration ignores it.
    pub for_us: u64,
    /// What goes wrong.
    #[serde(flatten)]
    pub what: What,
}

/// What can go wrong. Hosts are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// The process is killed; what it had handed to the operating system stays. Started again after
    /// the duration.
    Kill {
        /// Which host.
        host: HostIndex,
    },
    /// Machines lose power: everything not synced is lost, perhaps with a torn last record.
    Power {
        /// Which hosts, all at the same moment.
        hosts: Vec<HostIndex>,
    },
    /// The process is stopped and continued, as by SIGSTOP and SIGCONT.
    Pause {
        /// Which host.
        host: HostIndex,
    },
    /// The hosts of one side and the others cannot reach each other.
    Partition {
        /// One side.
        side: Vec<HostIndex>,
    },
    /// Frames get lost in one direction.
    OneWay {
        /// From this host
        from: HostIndex,
        /// to this host.
        to: HostIndex,
    },
    /// Two hosts cannot reach each other; every other host reaches both.
    Partial {
        /// One host.
        one: HostIndex,
        /// The other.
        other: HostIndex,
    },
    /// The whole network loses frames.
    Loss {
        /// How many of a million.
        ppm: u32,
    },
    /// The whole network delivers frames twice.
    Duplicate {
        /// How many of a million.
        ppm: u32,
    },
    /// The next frame on a link is delayed by the duration.
    Delay {
        /// From this host
        from: HostIndex,
        /// to this host.
        to: HostIndex,
    },
    /// A disk takes this many times as long.
    SlowDisk {
        /// Which host.
        host: HostIndex,
        /// How many times.
        factor: u64,
    },
    /// The next sync fails: the host must stop. Started again after the duration.
    FailSync {
        /// Which host.
        host: HostIndex,
    },
    /// The wall clock jumps.
    ClockJump {
        /// Which host.
        host: HostIndex,
        /// By how much.
        by_ms: i64,
    },
    /// The process is killed and its directory wiped. It comes back as another node, which joins.
    Wipe {
        /// Which host.
        host: HostIndex,
    },
    /// An operator asks a host to remove every node whose directory was wiped.
    Remove {
        /// The host that is asked.
        host: HostIndex,
    },
    /// An operator drains a host, and takes it back after the duration.
    Drain {
        /// Which host.
        host: HostIndex,
    },
    /// An operator drains a host, asks as the product does whether it is done, and ends it for good
    /// once it is: no fault of it, so another one forgets just then. It comes back as another node.
    /// After the duration it is taken back instead.
    Retire {
        /// Which host.
        host: HostIndex,
        /// Who is killed, or loses power, when it has ended.
        other: HostIndex,
    },
    /// An operator has the whole cluster shut down. After the duration every host is started again.
    Shutdown {
        /// The host that is asked.
        host: HostIndex,
    },
    /// An operator copies the directory of a running host. After the duration its disk is lost, and
    /// the copy is put back. If the others know more of the node, the host comes back as another.
    Restore {
        /// Which host.
        host: HostIndex,
    },
}

impl What {
    /// Whether every host it names is below `hosts`.
    #[must_use]
    pub fn is_within(&self, hosts: usize) -> bool {
        match self {
            What::Kill { host }
            | What::Pause { host }
            | What::SlowDisk { host, .. }
            | What::FailSync { host }
            | What::ClockJump { host, .. }
            | What::Drain { host }
            | What::Remove { host }
            | What::Shutdown { host }
            | What::Restore { host }
            | What::Wipe { host } => *host < hosts,
            What::Retire { host, other } => *host < hosts && *other < hosts && host != other,
            What::Power { hosts: list } | What::Partition { side: list } => {
                list.iter().all(|host| *host < hosts)
            }
            What::OneWay { from: one, to: other }
            | What::Delay { from: one, to: other }
            | What::Partial { one, other } => *one < hosts && *other < hosts && one != other,
            What::Loss { .. } | What::Duplicate { .. } => true,
        }
    }

    /// The hosts whose processes or directories it concerns.
    #[must_use]
    pub fn targets(&self) -> Vec<HostIndex> {
        match self {
            What::Kill { host }
            | What::Pause { host }
            | What::FailSync { host }
            | What::Drain { host }
            | What::Retire { host, .. }
            | What::Remove { host }
            | What::Shutdown { host }
            | What::Restore { host }
            | What::Wipe { host } => vec![*host],
            What::Power { hosts } => hosts.clone(),
            _ => Vec::new(),
        }
    }

    /// Its kind, in a world of this many hosts.
    #[must_use]
    pub fn kind(&self, hosts: usize) -> Kind {
        match self {
            What::Kill { .. } => Kind::Kill,
            What::Power { hosts: lost } if lost.len() == hosts => Kind::PowerAll,
            What::Power { hosts: lost } if lost.len() == 1 => Kind::Power,
            What::Power { .. } => Kind::PowerSome,
            What::Pause { .. } => Kind::Pause,
            What::Partition { .. } => Kind::Partition,
            What::OneWay { .. } => Kind::OneWay,
            What::Partial { .. } => Kind::Partial,
            What::Loss { .. } => Kind::Loss,
            What::Duplicate { .. } => Kind::Duplicate,
            What::Delay { .. } => Kind::Delay,
            What::SlowDisk { .. } => Kind::SlowDisk,
            What::FailSync { .. } => Kind::FailSync,
            What::ClockJump { .. } => Kind::ClockJump,
            What::Wipe { .. } => Kind::Wipe,
            What::Drain { .. } => Kind::Drain,
            What::Retire { .. } => Kind::Retire,
            What::Remove { .. } => Kind::Remove,
            What::Shutdown { .. } => Kind::Shutdown,
            What::Restore { .. } => Kind::Restore,
        }
    }

    /// The links it cuts in a network of this many hosts, from and to.
    #[must_use]
    pub fn links(&self, hosts: usize) -> Vec<(HostIndex, HostIndex)> {
        match self {
            What::OneWay { from, to } => vec![(*from, *to)],
            What::Partial { one, other } => vec![(*one, *other), (*other, *one)],
            What::Partition { side } => {
                let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
                pairs.filter(|(from, to)| side.contains(from) != side.contains(to)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The kinds of faults, as scenarios weigh them and summaries count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`What::Kill`].
    Kill,
    /// [`What::Power`] of one host.
    Power,
    /// [`What::Power`] of every host.
    PowerAll,
    /// [`What::Power`] of some hosts, neither none nor all of them.
    PowerSome,
    /// [`What::Pause`].
    Pause,
    /// [`What::Partition`].
    Partition,
    /// [`What::OneWay`].
    OneWay,
    /// [`What::Partial`].
    Partial,
    /// [`What::Loss`].
    Loss,
    /// [`What::Duplicate`].
    Duplicate,
    /// [`What::Delay`].
    Delay,
    /// [`What::SlowDisk`].
    SlowDisk,
    /// [`What::FailSync`].
    FailSync,
    /// [`What::ClockJump`].
    ClockJump,
    /// [`What::Wipe`].
    Wipe,
    /// [`What::Drain`].
    Drain,
    /// [`What::Remove`].
    Remove,
    /// [`What::Retire`].
    Retire,
    /// [`What::Shutdown`].
    Shutdown,
    /// [`What::Restore`].
    Restore,
}

fn names(hosts: &[HostIndex]) -> String {
    hosts.iter().map(|host| format!("n{}", host + 1)).collect::<Vec<_>>().join("+")
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Kill { host } => write!(f, "kill n{}", host + 1),
            What::Power { hosts } => write!(f, "power loss of {}", names(hosts)),
            What::Pause { host } => write!(f, "pause n{}", host + 1),
            What::Partition { side } => write!(f, "partition {} from the rest", names(side)),
            What::OneWay { from, to } => write!(f, "cut n{} -> n{}", from + 1, to + 1),
            What::Partial { one, other } => write!(f, "cut n{} <-> n{}", one + 1, other + 1),
            What::Loss { ppm } => write!(f, "lose {ppm} ppm"),
            What::Duplicate { ppm } => write!(f, "duplicate {ppm} ppm"),
            What::Delay { from, to } => write!(f, "delay a frame n{} -> n{}", from + 1, to + 1),
            What::SlowDisk { host, factor } => write!(f, "slow disk of n{} x{factor}", host + 1),
            What::FailSync { host } => write!(f, "fail a sync of n{}", host + 1),
            What::ClockJump { host, by_ms } => write!(f, "clock of n{} jumps {by_ms} ms", host + 1),
            What::Wipe { host } => write!(f, "wipe n{}", host + 1),
            What::Remove { host } => write!(f, "n{} removes the wiped nodes", host + 1),
            What::Drain { host } => write!(f, "drain n{}", host + 1),
            What::Retire { host, other } => {
                write!(f, "drain n{} and end it, then n{} forgets", host + 1, other + 1)
            }
            What::Shutdown { host } => write!(f, "n{} shuts the cluster down", host + 1),
            What::Restore { host } => write!(f, "put back a copy of n{}", host + 1),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u64| us as f64 / 1000.0;
        write!(f, "{:>10.3} ms for {:>9.3} ms: {}", ms(self.at_us), ms(self.for_us), self.what)
    }
}
