//! What is changed in a frame.

use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;
use quorate_kernel::rng::Rng;

/// Lengths, counts and numbers that decoders forget.
const NUMBERS: [i32; 9] = [
    -1,
    0,
    1,
    i32::MAX,
    i32::MIN,
    -2,
    JUTE_FRAME_BYTES_MAX as i32,
    JUTE_FRAME_BYTES_MAX as i32 + 1,
    0x2f2f_2f2f,
];

/// Changes a frame, behind its length, at some places. Mostly it still says how long it is.
pub fn harm(frame: &mut Vec<u8>, rng: &mut Rng) {
    let mut body = frame.split_off(4);
    for _ in 0..=rng.below(3) {
        let at = rng.below(body.len() as u64 + 1) as usize;
        match rng.below(7) {
            0 if at < body.len() => body[at] = rng.next() as u8,
            1 => number(&mut body, at, rng),
            2 => body.truncate(at),
            3 if at < body.len() => drop(body.remove(at)),
            4 => body.insert(at, rng.next() as u8),
            5 => body.extend_from_within(..at),
            // Another opcode reads the same fields as its own.
            _ if body.len() >= 8 => {
                let opcode = rng.below(135) as i32 - 15;
                body[4..8].copy_from_slice(&opcode.to_be_bytes());
            }
            _ => {}
        }
    }
    let length = body.len() as i32;
    let said = match rng.below(16) {
        0 => *rng.pick(&NUMBERS).expect("there are some"),
        1 => length + rng.below(9) as i32 - 4,
        _ => length,
    };
    frame.copy_from_slice(&said.to_be_bytes());
    frame.extend(body);
}

/// Puts a number over what is there.
fn number(body: &mut [u8], at: usize, rng: &mut Rng) {
    let number = *rng.pick(&NUMBERS).expect("there are some");
    if let Some(place) = body.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}
