//! How the open files that the operating system lets this process have are shared out.
//!
//! Every client, every other host and every table that is read is one. Clients get what the rest
//! leaves, each door its share, so that whoever is let in is served, and health, metrics and orders
//! are answered however many come.

use crate::config::Config;
use crate::exit::{Code, Failure};
use quorate_doors::DOORS;
use quorate_gateway::admin;
use quorate_gateway::native::grpc;
use rustix::process::{Resource, getrlimit, setrlimit};

/// The least limit with which a host starts.
const LIMIT_MIN: usize = 512;
/// Listeners, pollers, the segments of the log, and tables that are written and merged.
const OWN: usize = 128;
/// Connections to other hosts, and those that have not said yet who they are: so many at least, and
/// with a high limit this part of it.
const LINKS_MIN: usize = 192;
const LINKS_PART: usize = 16;
/// The most tables that are kept open. With a low limit, this part of what is left.
const STORE_MAX: usize = 900;
const STORE_PART: usize = 4;
/// Of what is left then, the part that each door with threads of its own gets at most.
const DOOR_PART: usize = 4;

/// How many open files each part of a host may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Tables of the store.
    pub store: usize,
    /// Clients of each door on the core thread.
    pub doors: Vec<usize>,
    /// Connections of the HTTP door.
    pub http: usize,
    /// Connections of the gRPC door.
    pub grpc: usize,
}

/// Has the system allow as many as it may, and shares them out.
///
/// # Errors
/// They are too few for any host.
pub(super) fn share(config: &Config) -> Result<Shares, Failure> {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    let allowed = match setrlimit(Resource::Nofile, limit) {
        Ok(()) => limit.current,
        Err(error) => {
            tracing::warn!(event = "file_limit_not_raised", %error);
            soft
        }
    };
    let allowed = allowed.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let grpc = config.grpc.clients_max as usize;
    let doors: Vec<usize> = config.doors.iter().map(|door| door.clients_max as usize).collect();
    let shares = Shares::of(allowed, &doors, grpc).ok_or_else(|| {
        let text = format!(
            "the system allows this process {allowed} open files, and a host needs {LIMIT_MIN}: \
             raise `ulimit -n`"
        );
        Failure::new(Code::CheckFailed, text)
    })?;
    if shares.doors != doors || shares.grpc < grpc {
        let (http, grpc) = (shares.http, shares.grpc);
        let named = DOORS.iter().zip(&shares.doors);
        let doors: Vec<_> = named.map(|(door, most)| format!("{} {most}", door.name)).collect();
        let doors = doors.join(", ");
        let why = "fewer clients than set: the system allows too few open files (`ulimit -n`)";
        tracing::info!(event = "clients_limited", allowed, doors, http, grpc, why);
    }
    Ok(shares)
}

impl Shares {
    /// Shares out so many, if so many clients of the doors on the core thread and of gRPC are
    /// wanted at most.
    fn of(allowed: usize, doors: &[usize], grpc: usize) -> Option<Shares> {
        if allowed < LIMIT_MIN {
            return None;
        }
        let spare = admin::CONNECTIONS_SPARE + grpc::CONNECTIONS_SPARE;
        let left = allowed - OWN - spare - LINKS_MIN.max(allowed / LINKS_PART);
        let store = STORE_MAX.min(left / STORE_PART);
        let clients = left - store;
        let http = admin::CONNECTIONS_MAX.min(clients / DOOR_PART);
        let grpc = grpc.min(clients / DOOR_PART);
        Some(Shares { store, doors: evenly(clients - http - grpc, doors), http, grpc })
    }
}

/// Shares `left` out to who wants so many each: what one does not want, the others get.
fn evenly(mut left: usize, wanted: &[usize]) -> Vec<usize> {
    let mut modest: Vec<usize> = (0..wanted.len()).collect();
    modest.sort_by_key(|door| wanted[*door]);
    let mut given = vec![0; wanted.len()];
    for (before, door) in modest.into_iter().enumerate() {
        given[door] = wanted[door].min(left / (wanted.len() - before));
        left -= given[door];
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_gets_some_and_together_they_never_get_more_than_there_is() {
        assert_eq!(Shares::of(LIMIT_MIN - 1, &[20_000], 1_000), None);
        for allowed in [LIMIT_MIN, 1_024, 4_096, 20_000, 1 << 20, usize::MAX] {
            let shares = Shares::of(allowed, &[20_000; 2], 1_000).expect("there are enough");
            let Shares { store, doors, http, grpc } = &shares;
            let clients: usize = doors.iter().sum();
            let spare = admin::CONNECTIONS_SPARE + grpc::CONNECTIONS_SPARE;
            assert!(OWN + LINKS_MIN + spare + store + clients + http + grpc <= allowed);
            assert!(*store >= 10, "the store takes no less");
            assert!(clients >= *http && *http >= 24 && *grpc >= 24, "{allowed}: {shares:?}");
            assert!(doors[0] >= 24 && doors[0] == doors[1], "{allowed}: {shares:?}");
        }
        let whole = Shares { store: 900, doors: vec![20_000], http: 1_024, grpc: 1_000 };
        assert_eq!(Shares::of(1 << 20, &[20_000], 1_000), Some(whole));
        let few = Shares::of(1 << 20, &[5], 7).expect("there are enough");
        assert_eq!((few.doors, few.grpc), (vec![5], 7));
    }

    #[test]
    fn what_one_door_does_not_want_the_others_get() {
        assert_eq!(evenly(90, &[50, 50, 50]), [30, 30, 30]);
        assert_eq!(evenly(90, &[50, 10, 50]), [40, 10, 40]);
        assert_eq!(evenly(90, &[10, 70, 5]), [10, 70, 5]);
        assert_eq!(evenly(90, &[]), [0; 0]);
    }
}
