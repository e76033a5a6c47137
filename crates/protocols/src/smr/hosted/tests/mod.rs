//! Tests of hosts of a machine over partitions, with real logs, disks and links.

mod copies;
mod durable;
mod frames;
mod letters;
mod random;
mod rings;
mod world;

use crate::multicast::{RingId, Slot};
use crate::smr::partitioned::{Answered, CommandId, PartitionId};

/// A replica of a partition has answered a command.
pub(crate) type Executed<M> = (PartitionId, CommandId, Answered<M>);
/// A replica has answered a question that was not ordered, before what it executes next.
pub(crate) type Read<M> = (PartitionId, CommandId, Answered<M>, (Slot, RingId));
