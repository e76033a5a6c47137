//! What a scenario says of orders.

use serde::{Deserialize, Serialize};

/// A cluster whose keyspaces come and go. Its workload's keys are their names: a put creates one, a
/// delete drops one, and a get asks a host which there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogSection {
    /// The weight of alterations, beside the workload's weights.
    pub alter: u32,
}
