//! What leaves a lane past the gate: to peers, clients, the lane itself or its neighbours.

use super::Node;
use super::outlet::transmit;
use crate::gate::Held;
use crate::host::Host;
use alloc::sync::Arc;
use quorate_kernel::effects::Note;
use quorate_kernel::ids::Lsn;
use quorate_kernel::limits::UNSYNCED_BYTES_MAX;
use quorate_kernel::news::News;
use quorate_kernel::roll::Roll;

impl Node {
    /// Who is on the roll, if one is kept.
    #[must_use]
    pub fn roll(&self) -> Option<&Arc<Roll>> {
        self.roll.as_ref()
    }

    /// The newest batch that holds anything lanes have written, whether it has left or not.
    #[must_use]
    pub fn newest(&self) -> Lsn {
        Lsn(self.batch.lsn.0 - u64::from(self.batch.writes.is_empty()))
    }

    /// How many bytes wait for the disk: writes that it has not taken, and about as many as what
    /// rests on them takes at the gate.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.unsynced_bytes + self.gate.held_bytes()
    }

    /// Whether the disk keeps up. The host reads from no client while it does not.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.waiting_bytes() < UNSYNCED_BYTES_MAX
    }

    /// Lets everything out that may leave, and delivers what lanes sent to themselves.
    pub(super) fn drain(&mut self, host: &mut dyn Host) {
        while let Some(held) = self.free.pop_front() {
            self.release(held, host);
        }
    }

    fn release(&mut self, held: Held, host: &mut dyn Host) {
        match held {
            Held::Frame(slot, to, body) => {
                let lane = self.slots[usize::from(slot)].id;
                transmit(self.me, lane, &to, body, host);
            }
            Held::Local(slot, local) => {
                self.call(usize::from(slot), host, |lane, env| lane.on_local(local, env));
            }
            Held::Answer(ticket, outcome) => host.answer(ticket, outcome),
            // It says no more than that it is closed.
            Held::Note(from, Note::Load(_) | Note::Observe(_)) if self.is_closed(from) => {}
            Held::Note(from, Note::Load(load)) => {
                let lane = self.slots[usize::from(from)].id;
                self.tell(News::Load { lane, load: &load }, Some(usize::from(from)), host);
            }
            Held::Note(from, Note::Observe(observation)) => {
                let lane = self.slots[usize::from(from)].id;
                let news = News::Observe { lane, observation: &observation };
                self.tell(news, Some(usize::from(from)), host);
            }
            Held::Note(_, Note::Silence { lane, peer, is_over }) => {
                if let Some(index) = self.slot_of(lane) {
                    self.tell_one(index, News::Silence { peer, is_over }, host);
                }
            }
            // Counted when it was raised.
            Held::Note(_, Note::Refused(_)) => {}
            Held::Note(_, Note::Keyspaces(keyspaces)) => {
                self.on_keyspaces(&keyspaces, host);
                self.tell(News::Keyspaces(&keyspaces), None, host);
            }
            Held::Note(from, Note::Settled { partition, since, settlement }) => {
                let lane = self.slots[usize::from(from)].id;
                let news = News::Settled { lane, partition, since, settlement };
                self.tell(news, Some(usize::from(from)), host);
            }
            Held::Note(from, Note::Roll(roll)) => {
                self.roll = Some(Arc::clone(&roll));
                self.tell(News::Roll(&roll), Some(usize::from(from)), host);
            }
            Held::Note(from, Note::Ring(ring)) => {
                host.ring(&ring);
                self.ring = Some(Arc::clone(&ring));
                self.tell(News::Ring(&ring), Some(usize::from(from)), host);
            }
        }
    }
}
