//! Sessions of clients: how one is shown to be its client's.

use quorate_kernel::ids::LaneId;
use quorate_kernel::tree::{Password, SessionId};

/// What the client of a session shows to go on with it, at any host: nobody else can know it, as
/// it follows from what the hosts of the cluster alone know.
#[must_use]
pub fn password(key: &[u8; 32], lane: LaneId, session: SessionId) -> Password {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"quorate tree session");
    hasher.update(&lane.0.to_be_bytes());
    hasher.update(&session.0.to_be_bytes());
    let mut password = Password::default();
    let hash = hasher.finalize();
    password.iter_mut().zip(hash.as_bytes()).for_each(|(byte, of)| *byte = *of);
    password
}
