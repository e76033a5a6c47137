//! What goes to one receiver, in frames that are not too large.

use crate::smr::sized::length;
use alloc::vec::Vec;
use serde::Serialize;

/// These things in their order, so many in a frame at most, and about so many bytes, if it is not
/// one thing alone that has more.
pub(super) fn frames<T: Serialize>(
    things: impl IntoIterator<Item = T>,
    (count_max, bytes_max): (usize, usize),
) -> Vec<Vec<T>> {
    let (mut frames, mut frame, mut bytes) = (Vec::new(), Vec::new(), 0);
    for thing in things {
        let more = length(&thing);
        if frame.len() == count_max || (!frame.is_empty() && bytes + more > bytes_max) {
            frames.push(core::mem::take(&mut frame));
            bytes = 0;
        }
        bytes += more;
        frame.push(thing);
    }
    if !frame.is_empty() {
        frames.push(frame);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_bounded_by_count_and_by_bytes_and_lose_nothing() {
        let things = [1, 1, 1, 300, 1, 1].map(|length| std::vec![0_u8; length]);
        let lengths = |most| -> Vec<Vec<usize>> {
            let frames = frames(things.clone(), most);
            frames.iter().map(|frame| frame.iter().map(Vec::len).collect()).collect()
        };
        assert_eq!(lengths((9, 1000)), [[1, 1, 1, 300, 1, 1]]);
        assert_eq!(lengths((2, 1000)), [[1, 1], [1, 300], [1, 1]]);
        assert_eq!(lengths((9, 100)), [&[1, 1, 1][..], &[300], &[1, 1]]);
        assert!(frames(Vec::<u8>::new(), (9, 9)).is_empty());
    }
}
