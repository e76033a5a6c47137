//! What registers lose and bear, and so do transactions of an engine that has groups: the data of a
//! group is there while a majority of its members has forgotten nothing.

use crate::fault::What;
use crate::groups::{self, Forgetful, Groups, Row, Taken};
use crate::host::{Host, Running};
use crate::queue::HostIndex;
use crate::workload::Ground;
use bytes::Bytes;
use quorate_kernel::engine::Engine;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::operation::Operation;
use quorate_kernel::storage::Durability;

/// Whether a fault leaves a majority that has forgotten nothing. Without one acknowledged data is
/// gone, which no protocol can mend: all of it with `memory`, which a loss of all hosts at once may
/// show, and with `periodic` what was not synced yet.
pub(in crate::workload) fn bears(what: &What, ground: &Ground<'_>) -> bool {
    let (is_sync, is_memory) =
        (ground.durability == Durability::Sync, ground.durability == Durability::Memory);
    match what {
        What::Kill { host } => !is_memory || may_forget(&[*host], ground),
        What::Power { hosts } => {
            !is_memory || ground.hosts.len() == hosts.len() || may_forget(hosts, ground)
        }
        What::FailSync { host } => is_sync || may_forget(&[*host], ground),
        What::Wipe { host } => {
            let is_first = !ground.hosts[*host].is_wiped;
            // The only copy is lost by design, see [`Workload::on_lost_copies`].
            let is_only = ground.replicas == 1;
            is_first && may_forget(&[*host], ground) && (is_only || may_lose(*host, ground))
        }
        // The copy is put back later, which is a loss of the disk.
        _ => true,
    }
}

/// Whether a majority of any group is left that has forgotten nothing, if these hosts forget. One
/// whose disk was lost is two members of a group that names its node of before, too.
pub(in crate::workload) fn may_forget(targets: &[HostIndex], ground: &Ground<'_>) -> bool {
    let forgets = |(index, host): &(HostIndex, &Host)| {
        // A host whose next sync fails will have forgotten when it is back.
        let is_failing = host.is_sync_failing && ground.durability != Durability::Sync;
        targets.contains(index) || host.has_forgotten || host.is_wiped || is_failing
    };
    let said = || ground.hosts.iter().map(|host| Groups::last_of(host, ground.lane));
    let rows: Vec<Row> = said().flat_map(|groups| groups.rows).collect();
    let forgetful = ground.hosts.iter().enumerate().filter(forgets);
    let count: usize = forgetful.map(|(_, host)| groups::seats(&rows, host)).sum();
    // Of an only copy one at a time is lost, too: while replicas become more there may be others.
    count <= (ground.replicas - (ground.replicas / 2 + 1)).max(1)
}

/// Whether every group that names this host is left with a majority of members that hold all of its
/// data. A newcomer that still copies is no second copy.
fn may_lose(host: HostIndex, ground: &Ground<'_>) -> bool {
    let others = ground.hosts.iter().enumerate().filter(|(index, _)| *index != host);
    // Who is down holds what it held.
    let last = |(index, host): (HostIndex, &Host)| (index, Groups::last_of(host, ground.lane));
    let said: Vec<(HostIndex, Groups)> = others.map(last).collect();
    groups::lacking_a_majority(&said, ground.hosts[host].node_id).is_none()
}

/// Whether these hosts may have the only copy of a key, as the groups say.
pub(in crate::workload) fn may_lose_key(
    hosts: &[HostIndex],
    key: &[u8],
    ground: &Ground<'_>,
) -> bool {
    let (Some(engine), Some(known)) = (ground.engine, ground.known) else { return true };
    let token = (engine.token)(&known.settings, key);
    groups::may_lose(&ground.held(), (hosts, &ground.nodes(hosts)), token)
}

/// Whether no other host that runs has anything of any group.
pub(in crate::workload) fn have_all(hosts: &[HostIndex], ground: &Ground<'_>) -> bool {
    let mut said = ground.held();
    said.retain(|(host, _)| ground.hosts[*host].running != Running::Down);
    groups::have_all(&said, hosts)
}

/// Whether an operation is about keys of several groups, as hosts say or said last.
pub(in crate::workload) fn apart(ground: &Ground<'_>) -> impl Fn(&Operation) -> bool {
    let hosts = ground.hosts.iter().enumerate();
    let last = hosts.map(|(index, host)| (index, Groups::last_of(host, ground.lane)));
    let said: Vec<(HostIndex, Groups)> = last.collect();
    let token = ground.engine.zip(ground.known);
    let token = token.map(|(engine, known)| (engine.token, known.settings.clone()));
    move |operation| match &token {
        Some((token, settings)) => {
            groups::are_apart(&said, operation.keys().map(|key| token(settings, key)))
        }
        None => true,
    }
}

/// What was acknowledged and may be gone.
pub(in crate::workload) struct Loss<'a> {
    taken: Taken,
    token: Option<(&'static Engine, &'a Keyspace)>,
}

impl Loss<'_> {
    /// From when on.
    pub fn since(&self) -> u64 {
        self.taken.since
    }

    /// Whether it may be something that concerns one of these keys. What concerns none, as a
    /// listing, may have seen any.
    pub fn has<'k>(&self, keys: impl IntoIterator<Item = &'k Bytes>) -> bool {
        let mut keys = keys.into_iter().peekable();
        let is_gone = |key: &Bytes| {
            let token = self.token.map(|(engine, known)| (engine.token)(&known.settings, key));
            token.is_none_or(|token| self.taken.has(token))
        };
        keys.peek().is_none() || keys.any(is_gone)
    }
}

/// What was acknowledged and may be gone, now that these hosts have lost what they had not synced:
/// of groups of which a majority lost it, see [`groups::taken`]. Where nobody says who has what,
/// all hosts count as members of one. For what was older nothing is excused.
pub(in crate::workload) fn lost<'a>(
    targets: &[HostIndex],
    ground: &Ground<'a>,
) -> Option<Loss<'a>> {
    ground.durability.every()?;
    let least = ground.replicas / 2 + 1;
    let forgetful = ground.hosts.iter().enumerate().filter(|(_, host)| host.has_forgotten);
    let forgetful = forgetful.map(|(index, host)| {
        let last = targets.contains(&index).then_some(host.lost_since.1);
        Forgetful { host: index, node: host.node_id, first: host.lost_since.0, last }
    });
    let forgetful: Vec<Forgetful> = forgetful.collect();
    let (said, token) = (ground.held(), ground.engine.zip(ground.known));
    let is_told = token.is_some() && said.iter().any(|(_, groups)| !groups.rows.is_empty());
    let taken = if is_told {
        groups::taken(&said, &forgetful, least)?
    } else {
        let mut first: Vec<u64> = forgetful.iter().map(|one| one.first).collect();
        first.sort_unstable();
        let last = forgetful.iter().filter_map(|one| one.last).min()?;
        Taken::everywhere(last.max(*first.get(least - 1)?))
    };
    Some(Loss { taken, token })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::tests::{row, said};
    use crate::workload::tests::{ground, periodic};
    use quorate_kernel::ids::{LaneId, NodeId};
    use quorate_store::memory::Crash;

    /// Of groups see [`groups::taken`].
    #[test]
    fn where_nobody_says_who_has_what_a_majority_of_all_hosts_loses_it() {
        let mut hosts = [Some(40), Some(50), None].map(periodic);
        hosts[..2].iter_mut().for_each(|host| host.stop(Crash::PowerLoss, true, 90));
        let since = |hosts: &[Host], target, durability| {
            lost(&[target], &ground(hosts, durability)).map(|loss| loss.since())
        };
        assert_eq!(since(&hosts, 1, "periodic=50ms"), Some(50));
        assert_eq!(since(&hosts, 2, "periodic=50ms"), None, "it has lost nothing");
        assert_eq!(since(&hosts, 1, "sync"), None);
        hosts[0].has_forgotten = false;
        assert_eq!(since(&hosts, 1, "periodic=50ms"), None, "two of three have it");
    }

    /// A host that has lost its disk is two of five members while a group names both of its nodes.
    #[test]
    fn a_host_that_is_two_members_is_forgotten_as_two() {
        let names = |members: &[u64]| said(&[row(1, (0, 9), members)]).remove(0).1;
        let bears = |members: &[u64]| {
            let mut hosts = [None; 5].map(periodic);
            for (node, host) in (1..).zip(&mut hosts) {
                host.node_id = NodeId(node);
                host.said.insert(LaneId::KEYSPACES, names(members));
            }
            (hosts[0].lost, hosts[0].is_wiped) = (vec![NodeId(9)], true);
            let ground = Ground { replicas: 5, ..ground(&hosts, "memory") };
            [may_forget(&[0], &ground), may_forget(&[1], &ground), may_forget(&[1, 2], &ground)]
        };
        assert_eq!(bears(&[1, 2, 3, 4, 5]), [true, true, false]);
        assert_eq!(bears(&[9, 2, 3, 4, 5]), [true, true, false], "the new node is no member");
        assert_eq!(bears(&[1, 9, 2, 3, 4]), [true, false, false], "three of five have nothing");
    }
}
