//! Space that deleted keys took is given back while nothing else happens.

use crate::host::{batch, contents, delete, fast_clock, new_directory, put, serve};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Log;
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u64 = 600;
const VALUE_BYTES: usize = 128 << 10;
/// The log stays, and the database's own journal, which is never written to, has its length from
/// the start.
const LOG_BYTES: u64 = (1 << 20) + (64 << 20);
const SOON: Duration = Duration::from_secs(120);

fn bytes_of(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).expect("a directory");
    entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            // Files come and go meanwhile.
            match entry.metadata() {
                Ok(of) if of.is_dir() => bytes_of(&entry.path()),
                Ok(of) => of.len(),
                Err(_) => 0,
            }
        })
        .sum()
}

#[test]
fn what_was_deleted_is_given_back_though_nothing_follows() {
    let place = new_directory();
    let mut rng = Rng::new(5);
    let (directory, mut opened) = serve(place.path(), fast_clock()).expect("opened");
    let mut lsn = 0;
    let mut write = |opened: &mut quorate_store::Opened, writes| {
        lsn += 1;
        opened.log.apply(&[batch(lsn, writes)]).expect("applied");
        opened.log.sync().expect("synced");
    };
    for number in 0..KEYS {
        // Nothing that could be compressed.
        let value: Vec<u8> = (0..VALUE_BYTES / 8).flat_map(|_| rng.next().to_le_bytes()).collect();
        write(&mut opened, vec![put(&number.to_be_bytes(), &value)]);
    }
    let full = bytes_of(place.path());
    assert!(full >= KEYS * VALUE_BYTES as u64, "all of it is there: {full}");
    let kept = 0..5_u64;
    for number in kept.end..KEYS {
        write(&mut opened, vec![delete(&number.to_be_bytes())]);
    }
    let deadline = Instant::now() + SOON;
    while opened.reader.stats().table_bytes > 2 * kept.end * VALUE_BYTES as u64
        || bytes_of(place.path()) > LOG_BYTES + 2 * kept.end * VALUE_BYTES as u64
    {
        let left = bytes_of(place.path());
        let stats = opened.reader.stats();
        assert!(Instant::now() < deadline, "{left} of {full} bytes are left: {stats:?}");
        opened.log.reclaim().expect("merged");
        std::thread::sleep(Duration::from_millis(10));
    }
    // It goes on as before, and opens with what was kept.
    write(&mut opened, vec![put(b"later", b"v")]);
    let before = contents(&opened.reader);
    assert_eq!(before.len() as u64, kept.end + 1);
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
    let (_directory, again) = serve(place.path(), fast_clock()).expect("opened again");
    assert_eq!(contents(&again.reader), before);
}
