//! The secrets that a host accepts at this moment: those of its identity or, once there is one, of
//! the file `cluster.secret` in its data directory, which may change while the host runs.
//!
//! One is the usual number. While a cluster changes its secret there are two: each host first
//! learns to accept the new one beside the old one, then to accept nothing else.

use super::secret::{self, SecretError};
use quorate_store::{Identity, Secret};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a file looks like from outside, if it is there; another look is another content.
type Look = Option<(SystemTime, u64)>;

/// What was seen of the file.
#[derive(Clone, Copy)]
struct SeenFile {
    /// When it was read last.
    read: Look,
    /// When it could not be read last: that is said once.
    failed: Option<Look>,
}

/// The secrets a host accepts. Shared by its threads.
pub struct Secrets {
    path: PathBuf,
    accepted: Mutex<Arc<[Secret]>>,
    first: SeenFile,
    /// How often they have changed.
    changes: AtomicU64,
}

impl Secrets {
    /// Those of a data directory.
    ///
    /// # Errors
    /// The file is there and cannot be read, or holds no secrets, or it was there and is gone: the
    /// secret of the host's birth may be the one that was given up.
    pub fn of(data: &Path, identity: &Identity) -> Result<Secrets, SecretError> {
        let path = data.join(secret::FILE_NAME);
        // Before it is read: what changes in between is another look then.
        let first = SeenFile { read: look(&path), failed: None };
        // Before it is read, too: the first change may come in between.
        let was_changed = secret::was_changed(data)?;
        let accepted = match secret::read(&path) {
            Err(error) if is_absent(&error) && !was_changed => vec![identity.secret],
            Err(error) if is_absent(&error) => return Err(secret::gone(path)),
            accepted => accepted?,
        };
        let accepted = Mutex::new(accepted.into());
        Ok(Secrets { path, accepted, first, changes: AtomicU64::new(0) })
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

    /// Reads the file whenever it has changed. What cannot be read changes nothing, nor does a file
    /// that is there no more: the secret of the host's birth may be the one that was given up.
    pub async fn watch(&self) {
        let mut seen = self.first;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.look_again(&mut seen);
        }
    }

    fn look_again(&self, seen: &mut SeenFile) {
        let look = look(&self.path);
        if look == seen.read {
            seen.failed = None;
            return;
        }
        match secret::read(&self.path) {
            Ok(fresh) => {
                *seen = SeenFile { read: look, failed: None };
                self.take(fresh);
            }
            Err(error) if seen.failed != Some(look) => {
                seen.failed = Some(look);
                tracing::error!(event = "secrets_not_read", %error, "those known stay accepted");
            }
            // It is tried again: what hindered it may end.
            Err(_) => {}
        }
    }

    fn take(&self, fresh: Vec<Secret>) {
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

fn look(path: &Path) -> Look {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, std::os::unix::fs::MetadataExt::ino(&found)))
}

/// Whether there is no file, which is not one that cannot be looked at.
fn is_absent(error: &SecretError) -> bool {
    let is_there = std::fs::symlink_metadata(&error.path).is_ok();
    error.source.kind() == ErrorKind::NotFound && !is_there
}

/// What tells a secret from others and does not give it away.
#[must_use]
pub fn fingerprint(secret: &Secret) -> String {
    let hash = blake3::derive_key("quorate 2026 fingerprint of a secret", &secret.0);
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{ClusterId, NodeId};
    use std::fs;

    const BIRTH: Secret = Secret([1; 32]);
    const NEW: Secret = Secret([2; 32]);

    fn identity() -> Identity {
        Identity {
            cluster: ClusterId(1),
            node: NodeId(2),
            host: 1,
            is_founder: true,
            secret: BIRTH,
            context_key: None,
            hosts: Vec::new(),
            keyspaces: Vec::new(),
        }
    }

    #[test]
    fn a_file_that_goes_changes_nothing() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join(secret::FILE_NAME);
        let secrets = Secrets::of(place.path(), &identity()).expect("there is no file");
        let mut seen = secrets.first;
        let mut accepts = || {
            secrets.look_again(&mut seen);
            secrets.accepted().to_vec()
        };
        assert_eq!(accepts(), [BIRTH]);
        secret::write(place.path(), &[NEW]).expect("a place");
        assert_eq!(accepts(), [NEW]);
        fs::remove_file(&file).expect("it was there");
        assert_eq!(accepts(), [NEW], "the old one was given up");
        fs::create_dir(&file).expect("a place");
        assert_eq!(accepts(), [NEW], "it cannot be read");
        fs::remove_dir(&file).expect("it was there");
        secret::write(place.path(), &[BIRTH, NEW]).expect("a place");
        assert_eq!(accepts(), [BIRTH, NEW]);
        assert_eq!(secrets.changes(), 2);
    }

    #[test]
    fn a_secret_that_was_changed_does_not_come_back_with_a_file_that_is_gone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mut lock = secret::lock(place.path()).expect("nobody has it");
        assert_eq!(*Secrets::of(place.path(), &identity()).expect("its own").accepted(), [BIRTH]);
        for _ in 0..2 {
            secret::change(place.path(), &mut lock, &[NEW]).expect("a place");
        }
        assert_eq!(*Secrets::of(place.path(), &identity()).expect("changed").accepted(), [NEW]);
        fs::remove_file(place.path().join(secret::FILE_NAME)).expect("it was there");
        let refused = Secrets::of(place.path(), &identity()).err().expect("refused");
        assert!(refused.to_string().contains("put it back"), "{refused}");
    }

    #[test]
    fn what_changes_while_it_is_read_is_seen() {
        let place = tempfile::tempdir().expect("a temporary directory");
        secret::write(place.path(), &[BIRTH]).expect("a place");
        let secrets = Secrets::of(place.path(), &identity()).expect("readable");
        // Before the first look of those that follow.
        secret::write(place.path(), &[BIRTH, NEW]).expect("a place");
        let mut seen = secrets.first;
        secrets.look_again(&mut seen);
        assert_eq!(*secrets.accepted(), [BIRTH, NEW]);
    }

    #[test]
    fn a_link_to_nothing_is_no_file_left_out() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join(secret::FILE_NAME);
        std::os::unix::fs::symlink("nothing", &file).expect("a place");
        assert!(Secrets::of(place.path(), &identity()).is_err(), "it is not the one of its birth");
    }
}
