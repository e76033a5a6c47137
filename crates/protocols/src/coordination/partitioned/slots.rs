//! Slots of paths, and numbers of changes.

use crate::smr::partitioned::{BUCKETS, Bucket};
use quorate_kernel::tree::Zxid;

/// The low bits of a change's number say where it was numbered: 0 by all partitions, else one more
/// than the slot. Those above count.
const WHERE_BITS: u32 = 11;
/// The largest number that a client may say that it has seen. Nobody gives one of its size: that is
/// a hundred thousand changes a second for eighty years.
pub const SEEN_MAX: Zxid = Zxid(1 << (WHERE_BITS + 48));

const _: () = assert!((BUCKETS as u64) < 1 << WHERE_BITS, "each slot has a number of its own");

/// The slot of a path (the paper's §V-B: its CRC32).
#[must_use]
pub fn slot(path: &str) -> Bucket {
    Bucket((crc32(path.as_bytes()) % u32::from(BUCKETS)) as u16)
}

/// The number of a change behind another one. It is made in the slot; if in none, by all
/// partitions. A place numbers one change after the other, so none has the number of another.
pub fn next(last: Zxid, slot: Option<Bucket>) -> Zxid {
    let count = (last.0 >> WHERE_BITS) + 1;
    Zxid(count << WHERE_BITS | slot.map_or(0, |slot| u64::from(slot.0) + 1))
}

/// CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| TABLE[(crc as u8 ^ byte) as usize] ^ (crc >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let (mut table, mut at) = ([0; 256], 0);
    while at < 256 {
        let (mut crc, mut bit) = (at as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_a_path_is_its_crc32_as_zip_files_have_it() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(slot("123456789"), Bucket((0xcbf4_3926_u32 % 1024) as u16));
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn numbers_grow_and_say_where_they_were_given() {
        let first = next(Zxid(0), None);
        let local = next(first, Some(Bucket(0)));
        assert!(Zxid(0) < first && first < local && local < next(local, None));
        // Two that do not know of each other have two numbers.
        assert_ne!(next(first, Some(Bucket(1))), local);
        assert_ne!(next(first, None), local);
        assert!(next(first, Some(Bucket(BUCKETS - 1))) < next(local, None));
    }
}
