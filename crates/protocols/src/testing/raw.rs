//! Messages as bytes: what tests of their encoding put together and take apart.

use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::format;
use std::string::String;
use std::vec::Vec;

/// A body whose pieces are any bytes, as a peer gone wrong could send them.
struct Raw(Vec<u8>, Vec<u8>);

impl Wire for Raw {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.raw(&self.0);
        out.tail(0, &Bytes::copy_from_slice(&self.1));
    }

    /// The pieces of another message.
    fn decode(input: &Decoder) -> Result<Raw, WireError> {
        Ok(Raw(input.head_bytes().to_vec(), input.tail(0).to_vec()))
    }
}

/// A message as it is sent.
pub fn frame(message: &impl Wire) -> Body {
    Body::encode(message, &mut BytesMut::new()).expect("it fits")
}

/// The head and the tail of a message.
pub fn pieces(message: &impl Wire) -> (Vec<u8>, Vec<u8>) {
    let raw: Raw = frame(message).decode().expect("it has pieces");
    (raw.0, raw.1)
}

/// What is read from a head and a tail.
pub fn read<M: Wire>(head: &[u8], tail: &[u8]) -> Result<M, WireError> {
    frame(&Raw(head.to_vec(), tail.to_vec())).decode()
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
