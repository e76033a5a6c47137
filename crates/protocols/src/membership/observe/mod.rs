//! Who observes whom, what observers find, and what follows of what they say.
//!
//! | file | what it holds |
//! |---|---|
//! | `rings.rs` | the rings: observers and subjects |
//! | `edge.rs` | one observer and its subjects: probes, and what share of them failed |
//! | `cut.rs` | all reports of a configuration, and the change that they amount to |
//! | `outbox.rs` | this node's own alerts, in batches and told again |
//! | `alerts.rs` | what this member observes, and what it makes of what all have observed |

mod alerts;
mod cut;
mod edge;
mod outbox;
mod rings;

pub(super) use cut::Cut;
pub(super) use edge::Edges;
pub(super) use outbox::Outbox;
pub(super) use rings::Rings;
