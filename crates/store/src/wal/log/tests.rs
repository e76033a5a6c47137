use super::*;
use quorate_kernel::ids::{NodeId, Start};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An engine that counts, and fails a step when told to.
#[derive(Default)]
struct Counting {
    commits: u32,
    persists: u32,
    fail_commit: bool,
    fail_persist: bool,
    fails_beside: bool,
    synced: Lsn,
}

fn full() -> Result<(), Fatal> {
    Err(Fatal::Disk("no space left on device".to_owned()))
}

impl Engine for Counting {
    fn commit(&mut self, _: &[Batch], synced: Lsn) -> Result<(), Fatal> {
        self.commits += 1;
        self.synced = synced;
        if self.fail_commit { full() } else { Ok(()) }
    }

    fn persist(&mut self) -> Result<(), Fatal> {
        self.persists += 1;
        if self.fail_persist { full() } else { Ok(()) }
    }

    fn check(&self) -> Result<(), Fatal> {
        if self.fails_beside { full() } else { Ok(()) }
    }
}

struct Bench {
    log: DiskLog<Counting>,
    mark: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

fn bench(clock: Clock) -> Bench {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("mark");
    Mark::create(&path).expect("created");
    let mark = Mark::open(&path).expect("opened");
    let log = DiskLog::new(Counting::default(), Lsn(0), mark, clock, Duration::ZERO);
    Bench { log, mark: path, _directory: directory }
}

fn batch(lsn: u64) -> Batch {
    Batch { lsn: Lsn(lsn), must_sync: true, writes: Vec::new() }
}

fn marked(bench: &Bench) -> u64 {
    Mark::open(&bench.mark).expect("opened").lsn().0
}

#[test]
fn a_failed_step_is_never_tried_again() {
    let mut bench = bench(Box::new(|| Time(0)));
    let log = &mut bench.log;
    log.apply(&[batch(1)]).expect("applied");
    log.engine.fail_persist = true;
    assert_eq!(log.sync(), full());
    log.engine.fail_persist = false;
    assert_eq!(log.sync(), full());
    assert_eq!(log.apply(&[batch(2)]), full());
    assert_eq!((log.engine.commits, log.engine.persists), (1, 1));
    assert_eq!(marked(&bench), 0, "what was not synced is not marked");
    assert_eq!(bench.log.finish(), full());
}

#[test]
fn a_sync_that_failed_beside_the_log_is_never_tried_again() {
    let mut bench = bench(Box::new(|| Time(0)));
    let log = &mut bench.log;
    log.apply(&[batch(1)]).expect("applied");
    log.engine.fail_persist = true;
    assert_eq!(log.with_engine(Engine::persist), full());
    log.engine.fail_persist = false;
    assert_eq!(log.sync(), full());
    assert_eq!(log.with_engine(Engine::persist), full());
    assert_eq!(log.maintain(), full(), "whoever writes nothing hears of it too");
    assert_eq!(log.engine.persists, 1);
    assert_eq!(marked(&bench), 0);
}

#[test]
fn who_writes_nothing_hears_of_what_failed_beside_the_log() {
    for stops in [false, true] {
        let mut bench = bench(Box::new(|| Time(0)));
        bench.log.apply(&[batch(1)]).expect("applied");
        bench.log.sync().expect("synced");
        bench.log.maintain().expect("all is well");
        bench.log.engine.fails_beside = true;
        let heard = if stops { bench.log.finish() } else { bench.log.maintain() };
        assert_eq!(heard, full(), "stops: {stops}");
        bench.log.engine.fails_beside = false;
        assert_eq!(bench.log.finish(), full(), "it is no clean stop");
    }
}

#[test]
fn a_full_disk_stops_the_log() {
    let mut bench = bench(Box::new(|| Time(0)));
    bench.log.engine.fail_commit = true;
    assert_eq!(bench.log.apply(&[batch(1)]), full());
    bench.log.engine.fail_commit = false;
    assert_eq!(bench.log.apply(&[batch(1)]), full());
    assert_eq!(bench.log.sync(), full());
}

#[test]
fn a_gap_between_numbers_is_refused() {
    for numbers in [vec![2], vec![0], vec![1, 3], vec![1, 1]] {
        let mut bench = bench(Box::new(|| Time(0)));
        let batches: Vec<Batch> = numbers.iter().copied().map(batch).collect();
        let refused = bench.log.apply(&batches);
        assert!(matches!(refused, Err(Fatal::Corrupt(_))), "{numbers:?}: {refused:?}");
        assert_eq!(bench.log.engine.commits, 0);
    }
}

#[test]
fn the_mark_follows_the_syncs_once_a_second_and_on_close() {
    let now = Arc::new(AtomicU64::new(0));
    let shown = now.clone();
    let mut bench = bench(Box::new(move || Time(shown.load(Ordering::Relaxed))));
    let mut lsn = 0;
    let mut step = |bench: &mut Bench, at_ms: u64| {
        lsn += 1;
        now.store(Span::millis(at_ms).0, Ordering::Relaxed);
        bench.log.apply(&[batch(lsn)]).expect("applied");
        assert_eq!(bench.log.engine.synced.0, lsn - 1, "a batch names what is synced");
        bench.log.sync().expect("synced");
        marked(bench)
    };
    assert_eq!(step(&mut bench, 0), 1, "the first sync is marked at once");
    assert_eq!(step(&mut bench, 500), 1);
    assert_eq!(step(&mut bench, 999), 1);
    assert_eq!(step(&mut bench, 1000), 4);
    assert_eq!(step(&mut bench, 1999), 4);
    let path = bench.mark.clone();
    bench.log.finish().expect("closed");
    assert_eq!(Mark::open(&path).expect("opened").lsn(), Lsn(5));
}

#[test]
fn the_mark_comes_up_to_the_last_sync_though_nothing_follows() {
    let now = Arc::new(AtomicU64::new(0));
    let shown = now.clone();
    let mut bench = bench(Box::new(move || Time(shown.load(Ordering::Relaxed))));
    let at = |ms: u64| now.store(Span::millis(ms).0, Ordering::Relaxed);
    assert_eq!(bench.log.mark_due(), None, "nothing was written");
    for lsn in 1..=3 {
        at(100 * lsn);
        bench.log.apply(&[batch(lsn)]).expect("applied");
        bench.log.sync().expect("synced");
    }
    assert_eq!((marked(&bench), bench.log.synced), (1, Lsn(3)));
    assert_eq!(bench.log.mark_due(), Some(Duration::from_millis(800)));
    at(1099);
    bench.log.maintain().expect("maintained");
    assert_eq!(marked(&bench), 1, "it is not rewritten more than once a second");
    at(1100);
    assert_eq!(bench.log.mark_due(), Some(Duration::ZERO));
    bench.log.maintain().expect("maintained");
    assert_eq!((marked(&bench), bench.log.mark_due()), (3, None));
}

#[test]
fn what_peers_were_seen_to_have_synced_is_kept_with_the_mark() {
    let now = Arc::new(AtomicU64::new(0));
    let shown = now.clone();
    let mut bench = bench(Box::new(move || Time(shown.load(Ordering::Relaxed))));
    let (node, start) = (NodeId(7), Start(3));
    let seen = |synced| vec![Sighting { node, start, run: 9, synced: Lsn(synced) }];
    let read = |bench: &Bench| Mark::open(&bench.mark).expect("opened").seen().to_vec();
    bench.log.note(seen(40));
    bench.log.maintain().expect("maintained");
    assert_eq!(read(&bench), seen(40));
    bench.log.note(seen(40));
    assert_eq!(bench.log.mark_due(), None);
    bench.log.note(seen(41));
    bench.log.maintain().expect("maintained");
    assert_eq!(read(&bench), seen(40), "not more than once a second");
    now.store(Span::secs(1).0, Ordering::Relaxed);
    bench.log.maintain().expect("maintained");
    assert_eq!((read(&bench), bench.log.mark_due()), (seen(41), None));
    bench.log.note(seen(42));
    bench.log.finish().expect("closed");
    assert_eq!(Mark::open(&bench.mark).expect("opened").seen(), seen(42));
}

#[test]
fn a_sync_with_nothing_new_costs_nothing() {
    let mut bench = bench(Box::new(|| Time(0)));
    bench.log.sync().expect("synced");
    bench.log.apply(&[batch(1), batch(2)]).expect("applied");
    bench.log.sync().expect("synced");
    bench.log.sync().expect("synced");
    assert_eq!((bench.log.engine.commits, bench.log.engine.persists), (1, 1));
}
