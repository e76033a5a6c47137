//! The other hosts: who they are, how they are reached, and what is said before frames are taken.
//!
//! | file | what it holds |
//! |---|---|
//! | `links.rs` | connections to all other hosts |
//! | `link.rs` | one of them, from its proof to its frames |
//! | `handshake.rs` | what two hosts say of themselves first |
//! | `meeting.rs` | what the others have seen of this host |
//! | `progress.rs` | how far each says that it has synced |
//! | `peers.rs` | who the other hosts are, and where |
//! | `names.rs` | the lookup of their names |
//! | `refused.rs` | what the node refused of its peers |
//! | `sent.rs` | how much each lane sent |
//! | `faults.rs` | frames dropped or delayed on purpose |

pub(super) mod faults;
pub(super) mod handshake;
mod link;
pub(super) mod links;
pub(super) mod meeting;
mod names;
mod peers;
mod progress;
pub(super) mod refused;
pub(super) mod sent;
