//! Whose a data directory is. What another user writes into it, its host cannot read.

use crate::exit::Failure;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses to change a directory as another user than its owner, as who its host runs: files are
/// readable by who made them alone.
///
/// # Errors
/// Another user owns it; nothing was changed.
pub fn check(directory: &Path) -> Result<(), Failure> {
    // What its host writes at each start tells more than the directory, which may have been given
    // to it. What cannot be looked at, the next step names.
    let found = std::fs::metadata(directory.join("start.toml"));
    let Ok(found) = found.or_else(|_| std::fs::metadata(directory)) else { return Ok(()) };
    let (owner, user) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner == user {
        return Ok(());
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let owner = name(owner, &users);
    Err(Failure::failed(format!(
        "the host of {} runs as {owner}, which could not read what {} writes there; nothing was \
         changed: run this as that user",
        directory.display(),
        name(user, &users)
    )))
}

/// A user by its name in a text like that of `/etc/passwd`, or else by its number.
fn name(id: u32, users: &str) -> String {
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then(|| format!("user {name}"))
    });
    found.unwrap_or_else(|| format!("user {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_called_by_their_names() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nquorate:x:990:990::/:/bin/false\n";
        assert_eq!(name(990, users), "user quorate");
        assert_eq!(name(0, users), "user root");
        assert_eq!(name(99, users), "user 99");
    }

    #[test]
    fn an_owner_may_and_a_stranger_may_not() {
        let place = tempfile::tempdir().expect("a temporary directory");
        check(place.path()).expect("it is ours");
        check(&place.path().join("nothing")).expect("the next step says so");
        let made = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(made.path().join("start.toml"), "").expect("a place");
        // Only root can give it away.
        let _ = std::os::unix::fs::chown(made.path(), Some(4321), None);
        check(made.path()).expect("what its host wrote is ours");
        // Who may not give it away does not own this one.
        let is_given = std::os::unix::fs::chown(place.path(), Some(4321), None).is_ok();
        let other = if is_given { place.path() } else { Path::new("/") };
        let refused = check(other).expect_err("refused").message;
        assert!(refused.contains("nothing was changed: run this as that user"), "{refused}");
    }
}
