//! The metrics in the OpenMetrics text format.
//!
//! One collector reads the cells when it is asked: nothing is kept twice, and the threads that
//! write the cells know nothing of the format.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use quorate_host::metrics::{
    DoorCells, Ending, Gauge, Histogram, KeyspaceCells, Kind, RejectReason, Shared,
};
use std::fmt;
use std::sync::Arc;

/// All metrics at this moment.
#[must_use]
pub fn render(shared: Arc<Shared>) -> String {
    let mut registry = Registry::with_prefix("quorate");
    registry.register_collector(Box::new(Cells(shared)));
    let mut body = String::new();
    text::encode(&mut body, &registry).expect("a string takes every write");
    body
}

#[derive(Debug)]
struct Cells(Arc<Shared>);

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Collector for Cells {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut out = Out(&mut encoder);
        self.process(&mut out)?;
        self.requests(&mut out)?;
        self.keyspaces(&mut out)?;
        self.peers(&mut out)?;
        self.disk(&mut out)
    }
}

impl Cells {
    fn process(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let shared = &self.0;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.0
            .encode_descriptor("build", "The build that runs", None, MetricType::Info)?
            .encode_info(&version)?;
        self.doors(out)?;
        let help = "Connections, commands and frames turned away";
        out.counters("rejected", help, |each| {
            RejectReason::ALL
                .iter()
                .try_for_each(|reason| each(&[("reason", reason.text())], shared.rejected(*reason)))
        })
    }

    fn doors(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let doors = self.0.doors();
        let doors = doors.iter().flat_map(|doors| doors.clients.iter());
        let label = |door: &DoorCells| [("door", door.name)];
        out.gauges("clients", "Clients connected to a door", |each| {
            doors.clone().try_for_each(|door| each(&label(door), door.clients.get()))
        })?;
        out.gauges("clients_bytes", "Bytes that the clients of a door take together", |each| {
            doors.clone().try_for_each(|door| each(&label(door), door.clients_bytes.get()))
        })?;
        out.counters("clients_accepted", "Clients accepted by a door", |each| {
            doors.clone().try_for_each(|door| each(&label(door), door.accepted.get()))
        })
    }

    fn requests(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let help = "Operations answered";
        out.counters("requests", help, |each| {
            self.each_ended(|labels, histogram| each(labels, histogram.count()))
        })?;
        let help = "Time from an operation's arrival to its answer";
        let mut family =
            out.descriptor("request_duration", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        self.each_ended(|labels, histogram| {
            encode_histogram(&mut family.encode_family(&labels)?, histogram)
        })?;
        let help = "Operations accepted and not yet answered";
        out.gauges("inflight_requests", help, |each| {
            self.0.keyspaces().iter().try_for_each(|keyspace| {
                each(&[("keyspace", keyspace.name())], keyspace.inflight.get())
            })
        })
    }

    /// Every combination that has occurred, and each kind of operation that ended well even if it
    /// has not: a rate needs the zero it rises from.
    fn each_ended(
        &self,
        mut each: impl FnMut(Labels<'_>, &Histogram) -> fmt::Result,
    ) -> fmt::Result {
        for keyspace in self.0.keyspaces().iter() {
            for kind in Kind::ALL {
                for ending in Ending::ALL {
                    let histogram = keyspace.durations(*kind, *ending);
                    if *ending != Ending::Ok && histogram.count() == 0 {
                        continue;
                    }
                    let labels = [
                        ("keyspace", keyspace.name()),
                        ("engine", keyspace.engine()),
                        ("op", kind.text()),
                        ("outcome", ending.text()),
                    ];
                    each(&labels, histogram)?;
                }
            }
        }
        Ok(())
    }

    fn keyspaces(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let keyspaces = self.0.keyspaces();
        let help = "Rounds of messages to a group";
        out.counters("quorum_rounds", help, |each| {
            keyspaces.iter().try_for_each(|keyspace| {
                keyspace.rounds().into_iter().try_for_each(|(kind, rounds)| {
                    let labels = [
                        ("keyspace", keyspace.name()),
                        ("engine", keyspace.engine()),
                        ("kind", kind),
                    ];
                    each(&labels, rounds)
                })
            })
        })?;
        out.gauges("keyspace_ready", "Whether the keyspace can serve clients here", |each| {
            keyspaces.iter().try_for_each(|keyspace| {
                each(&[("keyspace", keyspace.name())], u64::from(keyspace.is_ready()))
            })
        })?;
        out.gauges("view_id", "The version of the view in force here", |each| {
            keyspaces.iter().try_for_each(|keyspace| {
                each(&[("keyspace", keyspace.name())], keyspace.view_version.get())
            })
        })?;
        type Cell = fn(&KeyspaceCells) -> &Gauge;
        let groups: [(&str, &str, Cell); 4] = [
            ("groups", "The groups that are known here", |cells| &cells.groups),
            ("groups_busy", "The groups that change or move data", |cells| &cells.groups_busy),
            ("moved_keys", "Keys moved so far by groups that move", |cells| &cells.moved_keys),
            ("moved_bytes", "Bytes moved so far by groups that move", |cells| &cells.moved_bytes),
        ];
        for (name, help, value) in groups {
            out.gauges(name, help, |each| {
                keyspaces.iter().try_for_each(|keyspace| {
                    each(&[("keyspace", keyspace.name())], value(keyspace).get())
                })
            })?;
        }
        let help = "Bytes of the frames that the keyspace had for other hosts";
        out.counters("keyspace_sent_bytes", help, |each| {
            keyspaces.iter().try_for_each(|keyspace| {
                each(&[("keyspace", keyspace.name())], keyspace.sent_bytes.get())
            })
        })?;
        out.gauges("view_size", "The members of the view in force here", |each| {
            keyspaces.iter().try_for_each(|keyspace| {
                each(&[("keyspace", keyspace.name())], keyspace.view_members.get())
            })
        })
    }

    fn peers(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let peers: Vec<_> =
            self.0.peers().iter().map(|peer| (peer.label(), Arc::clone(peer))).collect();
        out.gauges("peer_up", "Whether the other host is connected", |each| {
            peers
                .iter()
                .try_for_each(|(host, peer)| each(&[("peer", host)], u64::from(peer.is_up())))
        })?;
        out.gauges("peer_queue_bytes", "Bytes that wait to be sent to the other host", |each| {
            peers
                .iter()
                .try_for_each(|(host, peer)| each(&[("peer", host)], peer.queued_bytes.get()))
        })?;
        let help = "Frames to the other host that were dropped; protocols repeat them";
        out.counters("peer_frames_dropped", help, |each| {
            peers
                .iter()
                .try_for_each(|(host, peer)| each(&[("peer", host)], peer.frames_dropped.get()))
        })
    }

    fn disk(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let shared = &self.0;
        let help = "Time one sync of the log took";
        let mut syncs =
            out.descriptor("wal_fsync", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        encode_histogram(&mut syncs, &shared.syncs)?;
        let help = "Longest time that a step of the disk thread took which is no sync";
        let longest = shared.slow_steps.longest().as_secs_f64();
        out.descriptor("disk_longest_step", help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&longest)?;
        out.counter("wal_batches", "Batches applied to the log", shared.batches.get())?;
        let written = shared.written_bytes.get();
        out.counter("wal_written_bytes", "Bytes of keys and values applied to the log", written)?;
        let unsynced = shared.unsynced_bytes.get();
        out.gauge(
            "unsynced_bytes",
            "Bytes that wait for the disk: writes, and what rests on them",
            unsynced,
        )?;
        let help = "Bytes taken on the disk; garbage is a part of the tables, at most so much";
        out.gauges("disk_bytes", help, |each| {
            let kinds = [
                ("log", &shared.log_bytes),
                ("tables", &shared.table_bytes),
                ("garbage", &shared.garbage_bytes),
            ];
            kinds.iter().try_for_each(|(kind, bytes)| each(&[("kind", kind)], bytes.get()))
        })
    }
}

/// Writes metrics to the format's encoder.
struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn descriptor<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        all: impl FnOnce(&mut dyn FnMut(Labels<'_>, u64) -> fmt::Result) -> fmt::Result,
    ) -> fmt::Result {
        let mut family = self.descriptor(name, help, None, MetricType::Counter)?;
        all(&mut |labels, value| {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&value, None)
        })
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        all: impl FnOnce(&mut dyn FnMut(Labels<'_>, u64) -> fmt::Result) -> fmt::Result,
    ) -> fmt::Result {
        let mut family = self.descriptor(name, help, None, MetricType::Gauge)?;
        all(&mut |labels, value| family.encode_family(&labels)?.encode_gauge(&value))
    }
}

fn encode_histogram(encoder: &mut MetricEncoder<'_>, histogram: &Histogram) -> fmt::Result {
    let taken = histogram.snapshot();
    encoder.encode_histogram::<NoLabelSet>(taken.sum_seconds, taken.count, &taken.buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::{open_doors, shared as sample};
    use quorate_store::Step;
    use std::time::Duration;

    #[test]
    fn cells_show_under_their_names_and_labels() {
        let shared = Arc::new(sample());
        open_doors(&shared);
        shared.doors().expect("they are open").clients[0].clients.set(7);
        shared.reject(RejectReason::Frame);
        shared.peers()[1].set_up(&shared, true);
        shared.peers()[0].frames_dropped.add(3);
        shared.syncs.observe(Duration::from_micros(80));
        shared.slow_steps.note(Step::Write, Duration::from_micros(2500));
        let keyspace = &shared.keyspaces()[0];
        keyspace.answered(Kind::Get, Ending::Ok, Duration::from_millis(1));
        keyspace.answered(Kind::Put, Ending::Unknown, Duration::from_secs(5));
        keyspace.show(vec![("rounds_write_back", "2".into())]);
        keyspace.sent_bytes.set(99);
        let text = render(Arc::clone(&shared));
        let put = "keyspace=\"default\",engine=\"linearizable\",op=\"put\"";
        for line in [
            "quorate_clients{door=\"resp\"} 7",
            "quorate_rejected_total{reason=\"frame\"} 1",
            "quorate_peer_up{peer=\"3\"} 1",
            "quorate_peer_up{peer=\"2\"} 0",
            "quorate_peer_frames_dropped_total{peer=\"2\"} 3",
            "quorate_wal_fsync_seconds_bucket{le=\"0.00005\"} 0",
            "quorate_wal_fsync_seconds_bucket{le=\"0.0001\"} 1",
            "quorate_wal_fsync_seconds_bucket{le=\"+Inf\"} 1",
            "quorate_disk_longest_step_seconds 0.0025",
            &format!("quorate_requests_total{{{put},outcome=\"unknown\"}} 1"),
            &format!("quorate_requests_total{{{put},outcome=\"ok\"}} 0"),
            &format!("quorate_request_duration_seconds_count{{{put},outcome=\"unknown\"}} 1"),
            "quorate_quorum_rounds_total{keyspace=\"default\",engine=\"linearizable\",\
             kind=\"write_back\"} 2",
            "quorate_keyspace_sent_bytes_total{keyspace=\"default\"} 99",
            "# TYPE quorate_request_duration_seconds histogram",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        assert!(
            !text.contains("op=\"get\",outcome=\"no_quorum\""),
            "what never occurred is left out"
        );
    }
}
