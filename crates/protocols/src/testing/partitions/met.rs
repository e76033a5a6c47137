//! What has happened in worlds.

/// What has happened; a test asserts that all of it has, over its seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Hosts that crashed.
    pub crashes: u64,
    /// Hosts that lost their disks.
    pub lost_disks: u64,
    /// Coordinators of logs that were lost with what they had proposed.
    pub lost_coordinators: u64,
    /// Commands that were sent again.
    pub sent_again: u64,
    /// Clients that began anew.
    pub client_restarts: u64,
    /// What was lost on its way.
    pub lost_packets: u64,
    /// How often some hosts did not hear the others.
    pub cuts: u64,
    /// Commands of several partitions.
    pub of_several: u64,
    /// Logs that were trimmed.
    pub trims: u64,
    /// Replicas that were replaced.
    pub layouts: u64,
    /// Replicas that went on from a copy.
    pub copies: u64,
    /// How often objects moved.
    pub switches: u64,
    /// Commands that were addressed before that.
    pub retries: u64,
    /// Objects of others that were not sent, as they were known.
    pub validated: u64,
    /// Commands that went on with a copy that was stale.
    pub rolled_back: u64,
}

impl Met {
    /// What has happened in all worlds together.
    pub fn add(&mut self, more: Met) {
        self.crashes += more.crashes;
        self.lost_disks += more.lost_disks;
        self.lost_coordinators += more.lost_coordinators;
        self.sent_again += more.sent_again;
        self.client_restarts += more.client_restarts;
        self.lost_packets += more.lost_packets;
        self.of_several += more.of_several;
        self.trims += more.trims;
        self.cuts += more.cuts;
        self.layouts += more.layouts;
        self.copies += more.copies;
        self.switches += more.switches;
        self.retries += more.retries;
        self.validated += more.validated;
        self.rolled_back += more.rolled_back;
    }

    /// All of it has happened.
    pub fn assert_all(&self) {
        let faults = [self.crashes, self.lost_disks, self.lost_coordinators, self.lost_packets];
        let rare = [self.cuts, self.trims, self.layouts, self.copies, self.client_restarts];
        let usual = [self.sent_again, self.of_several, self.switches, self.retries];
        assert!(faults.iter().chain(&rare).chain(&usual).all(|count| *count > 0), "{self:?}");
    }
}
