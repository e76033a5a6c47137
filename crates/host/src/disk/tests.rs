//! The thread: how it ends, and what its end tells.

use super::*;
use crate::samples;
use mio::{Events, Poll, Token};
use quorate_kernel::ids::{ClusterId, NodeId};
use quorate_store::{Directory, Identity, Secret, log};

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

/// How much longer than others a step takes here.
const STEP: Duration = Duration::from_millis(2);

#[test]
fn the_longest_step_is_told_and_a_sync_is_none() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let identity = Identity {
        cluster: ClusterId(1),
        node: NodeId(2),
        host: 1,
        is_founder: true,
        secret: Secret([7; 32]),
        context_key: None,
        hosts: Vec::new(),
        keyspaces: Vec::new(),
    };
    quorate_store::create(place.path(), &identity).expect("created");
    let directory = Directory::open(place.path(), None).expect("opened");
    let options = quorate_store::Options::default();
    let opened = quorate_store::open(&directory, &options, log::machine_clock()).expect("opened");
    let (_poll, report) = report();
    let ((work, waiting), shared) = (channel(), Arc::new(samples::shared()));
    let settings = Settings::new(&SyncEvery::default(), &shared);
    let (log, reader) = (opened.log, opened.reader);
    let mut worker = Worker::new(log, reader, waiting, report, settings, Durable::default());
    let longest = || Duration::from_nanos(shared.longest_step_nanos.get());
    let batch = |lsn| Batch { lsn: Lsn(lsn), must_sync: true, writes: Vec::new() };
    work.send(Work::Batch(batch(1))).expect("it waits");
    drop(work);
    worker.run().expect("it has ended");
    let of_batch = longest();
    assert!(!of_batch.is_zero(), "the step of a batch counts");
    worker.group.push(batch(2));
    assert_eq!(worker.apply(), Ok(true));
    worker.sync().expect("synced");
    assert_eq!((longest(), shared.syncs.count()), (of_batch, 2), "the two syncs do not");
    let began = Instant::now();
    worker.timed(|_| {
        while began.elapsed() < of_batch + STEP {
            std::thread::yield_now();
        }
    });
    let took = longest();
    assert!((of_batch..=began.elapsed()).contains(&took) && took > of_batch, "{took:?}");
    worker.timed(|_| ());
    assert_eq!(longest(), took, "a shorter one changes nothing");
    worker.log.close().expect("closed");
    drop((worker.reader, directory));
}
