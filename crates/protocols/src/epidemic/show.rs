//! What the console, the metrics and the simulator are shown.

use super::Epidemic;
use super::repair::join::Standing;
use quorate_kernel::process::Inspect;

impl Epidemic {
    pub(super) fn show(&self, into: &mut dyn Inspect) {
        let state = &self.state;
        let standing = match &state.standing {
            Standing::Ready => "ready",
            Standing::Joining(_) => "joining",
        };
        let (epto, counters) = (state.epto.counters(), &state.counters);
        let slices = state.slices.groups().map_or(0, |groups| groups.number());
        let doubtful = state.range().map_or(0, |range| state.doubt.count_within(&range));
        into.field("standing", &standing);
        into.field("places_ahead", &state.ahead);
        into.field("slices", &slices);
        into.field("members", &(state.slices.members().len() + 1));
        into.field("nodes_counted", &state.slices.count());
        into.field("neighbours", &state.cyclon.view().len());
        into.field("fanout", &state.epto.parameters().fanout);
        into.field("ttl", &state.epto.parameters().ttl);
        let share = state.measured.surviving_ppm().map_or(0, |ppm| ppm / 1_000);
        into.field("messages_arriving_permille", &share);
        into.field("latency_p99_us", &(state.measured.latency().0 / 1_000));
        into.field("doubtful_leaves", &doubtful);
        into.field("keys", &state.store.len());
        into.field("requests_remembered", &state.seen.len());
        into.field("events_waiting", &state.epto.waiting());
        into.field("events_delivered", &epto.delivered);
        into.field("events_late", &epto.late);
        into.field("places_lost", &epto.places_lost);
        into.field("balls", &epto.balls);
        into.field("broadcast", &counters.broadcast);
        into.field("broadcast_again", &counters.again);
        into.field("requests_repeated", &counters.repeated);
        into.field("holes", &counters.holes);
        into.field("holes_filled", &counters.filled);
        into.field("holes_given_up", &counters.given_up);
        into.field("reads_ahead", &counters.ahead);
        into.field("records_repaired", &counters.repaired);
        into.field("conflicts", &counters.conflicts);
        into.field("joins", &counters.joins);
        into.field("tombstones_purged", &counters.purged);
        into.field("payloads_malformed", &counters.malformed);
    }
}
