//! Data that is synced now and then: lost is what was acknowledged since the last syncs, and they
//! are as young as was promised.

use super::disk::{Disk, Lost, Unsynced};
use crate::support::cluster::Cluster;
use crate::support::load::{Load, Record, Recorded};
use quorate_check::history::{History, Recorder};
use quorate_check::{STEPS_MAX_DEFAULT, judge_all};
use quorate_kernel::time::Time;
use std::time::{Duration, SystemTime};

/// How many operations must be answered before and after each loss of power: they take several
/// times as long as a sync may be away.
const SOME: usize = 1200;
/// What the keyspace promises.
const EVERY: Duration = Duration::from_millis(50);
/// How many more losses must find all hosts in time than find one late: with syncs that are rare,
/// one may be in time by chance.
const IN_TIME_MORE: usize = 2;
/// How often power is lost at most until then.
const LOSSES_MAX: usize = 40;

/// A loss of power of all hosts.
struct Loss {
    /// When it was over.
    ended: Time,
    /// What was acknowledged from then on may be gone.
    since: Time,
    /// Whether no host had unsynced data for longer than was promised.
    is_in_time: bool,
    lost: Lost,
}

fn lose_power(cluster: &mut Cluster, disk: &mut Disk, load: &Load) -> Loss {
    let (begun, now) = (load.now(), SystemTime::now());
    cluster.kill(&[1, 2, 3]);
    let ended = load.now();
    // How long each host had something that was not synced.
    let mut ages = [1, 2, 3].map(|host| {
        let since = disk.unsynced_since(&cluster.data(host).join("log"));
        let age = since.and_then(|since| now.duration_since(since).ok());
        age.unwrap_or_default()
    });
    let took = disk.sync_took();
    println!("not synced for {ages:?}, a sync took {took:?}");
    let is_in_time = ages.iter().all(|age| *age <= EVERY + took);
    ages.sort_unstable();
    // What was acknowledged before was on two hosts, one of which has synced it.
    let since = Time(begun.0 - u64::try_from(ages[1].as_nanos()).expect("a test is short"));
    let lost = disk.lose_power(Unsynced::Lost);
    println!("{lost:?}");
    Loss { ended, since, is_in_time, lost }
}

/// Judges what was recorded, before each loss and in the end.
fn judge(recorded: &Recorded, losses: &[Loss]) {
    enum Event<'a> {
        Asked(&'a Record, usize),
        Told(&'a Record, usize),
        Lost(&'a Loss),
        Healed,
    }
    let records = recorded.records.iter().enumerate();
    let mut events: Vec<(Time, Event<'_>)> = records
        .flat_map(|(index, record)| {
            let asked = (record.invoked, Event::Asked(record, index));
            [asked, (record.completed, Event::Told(record, index))]
        })
        .chain(losses.iter().map(|loss| (loss.ended, Event::Lost(loss))))
        .chain([(recorded.healed, Event::Healed)])
        .collect();
    events.sort_by_key(|(time, _)| *time);
    let mut recorder = Recorder::new();
    let mut ids = vec![None; recorded.records.len()];
    let holds = |history: &History| {
        let report = judge_all(history, STEPS_MAX_DEFAULT);
        println!("{report}");
        assert!(report.verdict().is_holding(), "{report}");
        report
    };
    for (time, event) in events {
        match event {
            Event::Asked(record, index) => {
                ids[index] = Some(recorder.invoke(record.client, record.operation.clone(), time));
            }
            Event::Told(record, index) => {
                let id = ids[index].expect("it was asked before");
                recorder.complete(id, record.completion.clone(), time);
            }
            Event::Lost(loss) => {
                holds(&recorder.lose(loss.since, |_| true));
            }
            Event::Healed => recorder.heal(time),
        }
    }
    let report = holds(recorder.finish());
    assert!(report.durable.is_some(), "the durability was judged: {report}");
    // What is in doubt is little: most of what was answered is demanded.
    assert!(report.counts.answered > report.counts.operations / 3, "{report}");
}

#[test]
fn what_is_lost_was_acknowledged_since_the_last_syncs() {
    let every = format!("periodic={}ms", EVERY.as_millis());
    let mut cluster = Cluster::create(&every);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    let mut losses: Vec<Loss> = Vec::new();
    // On a busy machine a host may be late; then power is lost once more.
    let count = |losses: &[Loss], is_in_time| {
        losses.iter().filter(|loss| loss.is_in_time == is_in_time).count()
    };
    while count(&losses, true) < count(&losses, false) + IN_TIME_MORE {
        assert!(losses.len() < LOSSES_MAX, "hosts never sync as often as was promised");
        load.more(SOME);
        losses.push(lose_power(&mut cluster, &mut disk, &load));
        cluster.start_all();
    }
    load.more(SOME);
    let segments: usize = losses.iter().map(|loss| loss.lost.segments).sum();
    assert!(segments > 0, "every host had always synced everything");
    judge(&load.finish(&[1, 2, 3]), &losses);
}
