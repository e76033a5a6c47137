//! The secrets that a host accepts at this moment: those of its identity or, once there is one, of
//! the file `cluster.secret` in its data directory, which may change while the host runs.
//!
//! One is the usual number. While a cluster changes its secret there are two: each host first
//! learns to accept the new one beside the old one, then to accept nothing else.

use super::secret::{self, SecretError};
use quorate_store::{Identity, Secret};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a file looks like from outside; another look is another content.
type Look = Option<(SystemTime, u64)>;

/// The secrets a host accepts. Shared by its threads.
pub struct Secrets {
    path: PathBuf,
    birth: Secret,
    accepted: Mutex<Arc<[Secret]>>,
    /// How often they have changed.
    changes: AtomicU64,
}

impl Secrets {
    /// Those of a data directory.
    ///
    /// # Errors
    /// The file is there and cannot be read, or holds no secrets.
    pub fn of(data: &Path, identity: &Identity) -> Result<Secrets, SecretError> {
        let (path, birth) = (data.join(secret::FILE_NAME), identity.secret);
        let accepted = Mutex::new(accepted(&path, birth)?.into());
        Ok(Secrets { path, birth, accepted, changes: AtomicU64::new(0) })
    }

    /// Those accepted now. The first one is used to connect, the next one if it is refused.
    #[must_use]
    pub fn accepted(&self) -> Arc<[Secret]> {
        Arc::clone(&self.accepted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often they have changed: who keeps a copy looks whether it is an old one.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Reads the file whenever it has changed. What cannot be read changes nothing.
    pub async fn watch(&self) {
        let mut seen = self.look();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let look = self.look();
            if look != std::mem::replace(&mut seen, look) {
                self.read();
            }
        }
    }

    fn look(&self) -> Look {
        let found = std::fs::metadata(&self.path).ok()?;
        Some((found.modified().ok()?, std::os::unix::fs::MetadataExt::ino(&found)))
    }

    fn read(&self) {
        let fresh = match accepted(&self.path, self.birth) {
            Ok(fresh) => fresh,
            Err(error) => {
                tracing::error!(event = "secrets_not_read", %error, "those known stay accepted");
                return;
            }
        };
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if **accepted == *fresh {
            return;
        }
        let names = fresh.iter().map(fingerprint).collect::<Vec<_>>().join(", ");
        *accepted = fresh.into();
        self.changes.fetch_add(1, Ordering::Release);
        tracing::info!(event = "secrets_changed", accepted = names);
    }
}

fn accepted(path: &Path, birth: Secret) -> Result<Vec<Secret>, SecretError> {
    if path.exists() { secret::read(path) } else { Ok(vec![birth]) }
}

/// What tells a secret from others and does not give it away.
#[must_use]
pub fn fingerprint(secret: &Secret) -> String {
    let hash = blake3::derive_key("quorate 2026 fingerprint of a secret", &secret.0);
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
