//! What the stamps of consistent quorums cost, by counting: bytes of a reply, and the time to write
//! and read them. A lower bound: comparing the views at the coordinator is not in it.

use super::calibrate::frames;
use crate::page::{Table, fixed};
use crate::statistics::{Estimate, mean};
use bytes::{Bytes, BytesMut};
use quorate_cli::exit::Failure;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::view::ViewId;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use quorate_protocols::linearizable::group::{Generation, Standing};
use quorate_protocols::linearizable::message::{Known, Stamp};
use quorate_protocols::linearizable::record::Ts;
use quorate_protocols::quorum::CrashVector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hint::black_box;
use std::time::Instant;

/// How many replies are written and read in one go.
const TURNS: u32 = 20_000;
/// How often that is done with and without stamps in turn.
const ROUNDS: usize = 15;
/// The record of a reply.
const RECORD_BYTES: usize = 1024;

/// A reply with whatever stands before its record.
struct StampedReply<H> {
    head: H,
    record: Bytes,
}

impl<H: Serialize + DeserializeOwned> Wire for StampedReply<H> {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.head);
        out.tail(0, &self.record);
    }

    fn decode(input: &Decoder) -> Result<StampedReply<H>, WireError> {
        Ok(StampedReply { head: input.head()?, record: input.tail(0) })
    }
}

/// What stamps take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamps {
    /// More bytes of each reply.
    pub bytes: usize,
    /// More nanoseconds to write and read it.
    pub nanos: Estimate,
    /// Frames per get and per put; half of them are replies.
    pub frames: [f64; 2],
}

/// Counts what stamps take.
///
/// # Errors
/// The simulator, which counts frames, failed.
pub fn count() -> Result<Stamps, Failure> {
    let me = Incarnation { node: NodeId(0x1234_5678_9abc_def0), start: Start(3) };
    let ts = Ts { n: 1000, writer: me, sequence: 100_000 };
    let stamp = Stamp {
        view: ViewId { group: GroupId(0xfedc_ba98_7654_3210), version: 5 },
        standing: Standing::Ready,
        known: Known { generation: Generation { number: 2, floor: 100 }, epoch: 0 },
        crashes: CrashVector::default(),
        hint: None,
    };
    let record = Bytes::from(vec![7; RECORD_BYTES]);
    let stamped = StampedReply { head: (100_000_u64, stamp, ts, true), record: record.clone() };
    let bare = StampedReply { head: (100_000_u64, ts, true), record };
    let bytes = |body: Body| body.frame_bytes();
    let mut arena = BytesMut::new();
    let more = bytes(Body::encode(&stamped, &mut arena).expect("it fits"))
        - bytes(Body::encode(&bare, &mut arena).expect("it fits"));
    let pair = |_| nanos(&stamped) - nanos(&bare);
    let differences: Vec<f64> = (0..ROUNDS).map(pair).collect();
    Ok(Stamps { bytes: more, nanos: mean(&differences), frames: [frames(100)?, frames(0)?] })
}

/// How long it takes to write a reply and read it back.
fn nanos<H: Serialize + DeserializeOwned>(reply: &StampedReply<H>) -> f64 {
    let mut arena = BytesMut::with_capacity(1 << 20);
    let begun = Instant::now();
    for _ in 0..TURNS {
        let body = Body::encode(black_box(reply), &mut arena).expect("it fits");
        let read = body.decode::<StampedReply<H>>();
        black_box(&read.is_ok());
    }
    begun.elapsed().as_nanos() as f64 / f64::from(TURNS)
}

impl Stamps {
    /// The share of an operation's processor time, for mixes whose operations cost this much.
    #[must_use]
    pub fn table(&self, cpu_us: [f64; 2]) -> Table {
        let mut table = Table::new(
            "fig6-stamps",
            "What view stamps take, counted: a lower bound of the price of consistent quorums",
            &[
                "mix and value",
                "replies of other hosts",
                "bytes of stamps",
                "writing and reading them (ns)",
                "host CPU per op (µs)",
                "share (%)",
            ],
        );
        let kinds = ["95/5 with 1024 B", "50/50 with 1024 B"].into_iter();
        let [gets, puts] = self.frames.map(|frames| frames / 2.0);
        let replies = [0.95, 0.5].map(|share| share * gets + (1.0 - share) * puts);
        for ((name, replies), cpu_us) in kinds.zip(replies).zip(cpu_us) {
            let nanos = self.nanos.mean * replies;
            table.push(vec![
                name.to_owned(),
                fixed(replies, 2),
                fixed(self.bytes as f64 * replies, 0),
                fixed(nanos, 0),
                fixed(cpu_us, 1),
                fixed(nanos / (cpu_us * 1e3).max(1.0) * 100.0, 2),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_takes_bytes_and_has_a_row_for_each_mix() {
        let stamps = count().expect("the simulator runs");
        assert!((12..64).contains(&stamps.bytes), "{stamps:?}");
        assert_eq!(stamps.table([10.0, 20.0]).rows.len(), 2);
    }
}
