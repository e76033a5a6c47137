//! What must hold of the roll, where hosts keep one.

use super::World;
use crate::host::{Host, Running, count};
use quorate_kernel::ids::LaneId;

fn of(host: &Host, name: &str) -> u64 {
    count(host, LaneId::ROLL, name)
}

impl World<'_> {
    fn keeps_roll(&self) -> bool {
        self.prepared.scenario.roll
    }

    /// Looks whether two hosts differ in what they know of one configuration, now or earlier.
    pub(super) fn watch_roll(&mut self) {
        if !self.keeps_roll() {
            return;
        }
        for (index, host) in self.machines.hosts.iter().enumerate() {
            let (number, digest) = (of(host, "number"), of(host, "digest"));
            if number == 0 {
                continue;
            }
            let known = *self.rolls.entry(number).or_insert(digest);
            if known != digest {
                let message = format!("n{} has another configuration {number}", index + 1);
                return self.machines.condemn("roll", message);
            }
        }
    }

    /// Who is not on the one roll of all that take part, or does not know it. Where disks were
    /// lost, and the members that are left are no majority, it stands still for good: then all have
    /// to say so.
    pub(super) fn unlisted(&self) -> Option<String> {
        if !self.keeps_roll() {
            return None;
        }
        let joined = || self.machines.hosts.iter().enumerate().filter(|(_, it)| it.has_joined);
        let newest = joined().map(|(_, host)| of(host, "number")).max()?;
        let hosts = joined().count() as u64;
        let knows = |(_, host): &(_, &Host)| of(host, "number") == newest;
        let members = joined().find(knows).map(|(_, host)| of(host, "members"))?;
        let left: u64 = joined().map(|(_, host)| of(host, "is_member")).sum();
        if left < members / 2 + 1 && self.lost().next().is_some() {
            let mut going = joined().filter(|(_, host)| of(host, "goes_on") == 1);
            return going
                .next()
                .map(|(index, _)| format!("n{} has a roll without others", index + 1));
        }
        joined().find_map(|(index, host)| {
            let is_up = host.running == Running::Up;
            let knows = of(host, "number") == newest && of(host, "goes_on") == 1;
            let are_all = of(host, "members") == hosts && of(host, "hosts") == hosts;
            let (number, members) = (of(host, "number"), of(host, "members"));
            (!is_up || !knows || !are_all)
                .then(|| format!("n{} is at roll {number} of {newest}, {members} on it", index + 1))
        })
    }
}
