//! The messages of `linearizable`, four of which may cross the network bare.

use quorate_kernel::error::WireError;
use quorate_kernel::view::ViewId;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use quorate_protocols::linearizable::group::Standing;
use quorate_protocols::linearizable::message::{Basis, Known, Message, Stamp, Want};
use quorate_protocols::linearizable::record::Ts;
use quorate_protocols::quorum::CrashVector;

/// The tags of bare messages: no others are so high.
const READ_A: u8 = 120;
const READ_B: u8 = 121;
const WRITE_A: u8 = 122;
const WRITE_B: u8 = 123;

/// What a write rests on that says nothing of it: no member refuses it.
pub(super) const ANY_BASIS: Basis =
    Basis { generation: u64::MAX, is_imposed: false, epoch: u64::MAX };

/// A message between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// What it says. Of a bare one that has arrived, what was left out is yet to be filled in.
    pub message: Message,
    /// Whether it leaves out views, stamps, and what writes rest on.
    pub is_bare: bool,
}

/// Whether a message can be bare.
pub(super) fn can_be_bare(message: &Message) -> bool {
    let (read, write) = (
        matches!(message, Message::ReadA { .. } | Message::ReadB { .. }),
        matches!(message, Message::WriteA { .. } | Message::WriteB { .. }),
    );
    read || write
}

/// The stamp of a member of this view of which nothing is known but that it answers.
pub(super) fn stamp_of(view: ViewId) -> Stamp {
    let (known, crashes) = (Known::default(), CrashVector::default());
    Stamp { view, standing: Standing::Ready, known, crashes, hint: None }
}

impl Wire for Sent {
    fn encode(&self, out: &mut Encoder<'_>) {
        match &self.message {
            message if !self.is_bare => message.encode(out),
            Message::ReadA { op, want, key, .. } => {
                out.head(&(READ_A, op, want));
                out.tail(0, key);
            }
            Message::ReadB { op, ts, live, record, .. } => {
                out.head(&(READ_B, op, ts, live));
                out.tail(0, record);
            }
            Message::WriteA { op, key, record, .. } => {
                out.head(&(WRITE_A, op));
                out.tail(0, key);
                out.tail(1, record);
            }
            Message::WriteB { op, .. } => out.head(&(WRITE_B, op)),
            other => unreachable!("{other:?} is never bare"),
        }
    }

    fn decode(input: &Decoder) -> Result<Sent, WireError> {
        let (view, stamp) = (ViewId::default(), stamp_of(ViewId::default()));
        let message = match input.items::<u8>().next() {
            Some(Ok(READ_A)) => {
                let (_, op, want): (u8, u64, Want) = input.head()?;
                Message::ReadA { op, view, want, key: input.tail(0) }
            }
            Some(Ok(READ_B)) => {
                let (_, op, ts, live): (u8, u64, Ts, bool) = input.head()?;
                Message::ReadB { op, stamp, ts, live, record: input.tail(0) }
            }
            Some(Ok(WRITE_A)) => {
                let (_, op): (u8, u64) = input.head()?;
                let (key, record) = (input.tail(0), input.tail(1));
                Message::WriteA { op, view, basis: ANY_BASIS, key, record }
            }
            Some(Ok(WRITE_B)) => {
                let (_, op): (u8, u64) = input.head()?;
                Message::WriteB { op, view, ok: true, stamp }
            }
            _ => return Ok(Sent { message: Message::decode(input)?, is_bare: false }),
        };
        message.validate()?;
        Ok(Sent { message, is_bare: true })
    }
}
