//! Building block: what hosts of a keyspace have to do with its groups, whatever its engine is.
//!
//! A group is a replicated log ([`crate::vsr`]) with members of its own. Every host may ask any
//! group; so it must know where primaries are. Members change as hosts join, leave and fail; so
//! primaries must know whom to wish for, and hosts when they may forget. Plain structs and
//! functions: an engine's lane calls them, and sends what they say.
//!
//! # What rests on it
//! Nothing but who is asked first, and who is wished for: members are changed by their log alone.
//!
//! | file | what it holds |
//! |---|---|
//! | `seats.rs` | who founds which group |
//! | `routes.rs` | where primaries are, and who may speak for a group |
//! | `hosts.rs` | what is rumoured of hosts, and who is on the roll |
//! | `choice.rs` | whom a primary wishes for |
//! | `seat.rs` | whether a wish is kept, and whether a host is still counted on |
//! | `examine.rs` | who holds what, as members say |
//! | `shown.rs` | what operators are shown |
//! | `frames.rs`, `outbox.rs` | messages of replicas, those of a turn together |

mod choice;
mod examine;
mod frames;
mod hosts;
mod outbox;
mod routes;
mod seat;
mod seats;
mod shown;

pub use choice::{founders_among, wished};
pub use examine::{Examinations, Known, StandQuestion, Stands, stands};
pub use frames::{Leads, PARTS_MAX, decode_parts, encode_parts};
pub use hosts::{FAILED, Hosts};
pub use outbox::Outbox;
pub use routes::{Hint, Routes};
pub use seat::{Outside, Seat, counts_on};
pub use seats::founders;
pub use shown::{CHANGING, here, is_ready, part, remembers, show_log};
