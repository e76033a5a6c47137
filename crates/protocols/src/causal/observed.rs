//! What tests and measurements see from within: no part of the engine that ships.

use super::Causal;
use super::keys::data_key;
use crate::dots::context::CausalContext;
use crate::dots::dot::Partition;

impl Causal {
    /// What is left of the context of a client's key at a partition here, beside the stored object.
    #[must_use]
    pub fn beside(&self, at: Partition, key: &[u8]) -> Option<&CausalContext> {
        let replica = self.durable.replicas.get(&at)?;
        replica.unstripped.get(&data_key(key)).map(|beside| &beside.context)
    }
}
