//! The thread: how it ends, and what its end tells.

use super::*;
use mio::{Events, Poll, Token};

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

fn report() -> (Poll, Arc<Report>) {
    let poll = Poll::new().expect("a poller");
    let waker = Waker::new(poll.registry(), Token(0)).map(Arc::new).expect("a waker");
    let report = Report {
        written: AtomicU64::new(0),
        synced: AtomicU64::new(0),
        failure: Mutex::new(None),
        waker,
    };
    (poll, Arc::new(report))
}

#[test]
fn a_thread_that_panicked_is_a_disk_that_failed() {
    let (mut poll, report) = report();
    let ((work, waiting), seen) = (channel(), Durable::default());
    let disk = Disk::over(work, report, seen, move |_| {
        let work: Result<Work, _> = waiting.recv();
        panic!("it has {} batch", usize::from(work.is_ok()));
    });
    let mut disk = disk.expect("a thread");
    assert_eq!(disk.progress(), Ok(None));
    disk.commit(Batch::default());
    let began = Instant::now();
    while disk.progress() == Ok(None) {
        assert!(began.elapsed() < PATIENCE, "its failure is never told");
        poll.poll(&mut Events::with_capacity(1), Some(PATIENCE)).expect("it polls");
    }
    assert_eq!(disk.progress(), Err(panicked()));
    assert_eq!(disk.close(), Err(panicked()));
}

#[test]
fn the_thread_has_ended_when_its_handle_is_dropped() {
    let (_poll, report) = report();
    let ((work, waiting), seen) = (channel(), Durable::default());
    let done = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&done);
    let disk = Disk::over(work, report, seen, move |_| {
        while let Ok(Work::Batch(batch)) = waiting.recv() {
            std::thread::yield_now();
            counted.fetch_add(batch.lsn.0, Ordering::Relaxed);
        }
        Ok(())
    });
    let disk = disk.expect("a thread");
    (1..=1000).for_each(|lsn| disk.commit(Batch { lsn: Lsn(lsn), ..Batch::default() }));
    drop(disk);
    assert_eq!(done.load(Ordering::Relaxed), 500_500);
}

/// A merge goes on after that for as long as it takes.
#[test]
fn what_is_synced_is_told_before_the_log_is_closed() {
    let (_poll, report) = report();
    let ((work, waiting), seen) = (channel::<Work>(), Durable::default());
    let (merged, merges) = channel::<()>();
    let disk = Disk::over(work, report, seen, move |finished| {
        assert!(waiting.recv().is_err(), "nothing was handed over");
        finished.send(()).expect("somebody waits");
        merges.recv().expect("it ends");
        Ok(())
    });
    let mut disk = disk.expect("a thread");
    assert_eq!(disk.finish(), Ok(()));
    merged.send(()).expect("it goes on");
    assert_eq!(disk.close(), Ok(()));
}

#[test]
fn a_last_sync_that_fails_is_told_when_all_should_be_synced() {
    let (_poll, report) = report();
    let (work, waiting) = channel::<Work>();
    let failed = Fatal::Disk("no room".to_owned());
    let told = failed.clone();
    let disk = Disk::over(work, report, Durable::default(), move |_| {
        assert!(waiting.recv().is_err(), "nothing was handed over");
        Err(told)
    });
    assert_eq!(disk.expect("a thread").finish(), Err(failed));
}
