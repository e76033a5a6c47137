//! Bytes that clients carry from host to host, signed so that they can make none up.
//!
//! ```text
//! body | mac 11
//! ```
//! The MAC is BLAKE3 over what the bytes are for, the lane, which is never given to another
//! keyspace, and the body, keyed with the cluster's secret and cut.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::LaneId;
use quorate_kernel::mutant;
use quorate_kernel::receipt::TokenError;

const MAC_BYTES: usize = 11;

/// Signs, and reads what it has signed.
#[derive(Clone)]
pub struct Sealer {
    key: [u8; 32],
    purpose: &'static [u8],
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// Signs with this key, for one purpose: no purpose begins with another one.
    #[must_use]
    pub fn new(key: [u8; 32], purpose: &'static [u8]) -> Sealer {
        Sealer { key, purpose }
    }

    fn mac(&self, lane: LaneId, body: &[u8]) -> [u8; MAC_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(self.purpose);
        hasher.update(&lane.0.to_be_bytes());
        hasher.update(body);
        let whole = hasher.finalize();
        *whole.as_bytes().first_chunk().expect("a hash is longer")
    }

    /// A body, signed for a keyspace.
    #[must_use]
    pub fn seal(&self, lane: LaneId, body: &[u8]) -> Bytes {
        let mut token = BytesMut::with_capacity(body.len() + MAC_BYTES);
        token.put_slice(body);
        token.put_slice(&self.mac(lane, body));
        token.freeze()
    }

    /// The body of `N` bytes that was signed for this keyspace.
    ///
    /// # Errors
    /// The token has another length, or was not signed so.
    pub fn open<const N: usize>(&self, lane: LaneId, token: &[u8]) -> Result<[u8; N], TokenError> {
        let Some((body, mac)) = token.split_first_chunk::<N>() else {
            return Err(TokenError::Damaged);
        };
        if mac.len() != MAC_BYTES {
            return Err(TokenError::Damaged);
        }
        // Who tries many learns nothing from how long it takes.
        let differing = mac.iter().zip(self.mac(lane, body)).fold(0, |all, (a, b)| all | (a ^ b));
        if differing != 0 && !mutant!("tokens_unsigned") {
            return Err(TokenError::Forged);
        }
        Ok(*body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_for_the_keyspace_and_the_purpose_is_opened() {
        let (sealer, lane) = (Sealer::new([7; 32], b"place"), LaneId(17));
        let token = sealer.seal(lane, b"body");
        assert_eq!(sealer.open(lane, &token), Ok(*b"body"));
        assert_eq!(sealer.open::<4>(LaneId(18), &token), Err(TokenError::Forged));
        let others = [Sealer::new([8; 32], b"place"), Sealer::new([7; 32], b"end")];
        assert!(others.iter().all(|it| it.open::<4>(lane, &token) == Err(TokenError::Forged)));
        let mut changed = token.to_vec();
        changed[2] += 1;
        assert_eq!(sealer.open::<4>(lane, &changed), Err(TokenError::Forged));
        for wrong in [&b"x"[..], &token[1..], &token[..4], &[]] {
            assert_eq!(sealer.open::<4>(lane, wrong), Err(TokenError::Damaged));
        }
    }
}
