//! A process that sends nothing, and has no timer.

use quorate_kernel::error::WireError;
use quorate_kernel::process::Timer;
use quorate_kernel::wire::{Decoder, Encoder, Wire};

#[derive(Debug)]
pub struct Silence;

impl Wire for Silence {
    fn encode(&self, _out: &mut Encoder<'_>) {}

    fn decode(_input: &Decoder) -> Result<Silence, WireError> {
        Ok(Silence)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Never;

impl Timer for Never {
    fn code(self) -> u32 {
        0
    }

    fn from_code(_code: u32) -> Option<Never> {
        Some(Never)
    }
}
