//! Who comes, comes again, leaves, and is sent away: what the ring says of hosts is done on the
//! roll.

use super::keeper::Stands;
use super::lane::RollLane;
use super::{Context, names};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::ROLL_SEEDS_MAX;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use quorate_kernel::{mutant, probe};

/// How often it is looked who should come and go.
const LOOK: Span = Span::secs(1);
/// Who was removed comes at once if it has not come again for so long.
const CALM: Span = Span::secs(300);
/// It waits for two to the power of this in seconds at most: longer than groups wait for members.
const OFTEN_MAX: u32 = 7;
/// So many members send away who has left: any one is enough, and may be down.
const SENDERS: usize = 3;

impl RollLane {
    pub(super) fn tick_wishes(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.wishes_at {
            return;
        }
        self.wishes_at = cx.now + LOOK;
        let stands = self.ring.host(cx.me.node).map_or(Standing::Up, |host| host.standing);
        let has_left = stands == Standing::Left;
        match self.keeper.stands(cx.now) {
            Stands::Away | Stands::Joining if !has_left => self.join(cx),
            // It was taken back.
            Stands::Out if !has_left => self.come_again(cx),
            Stands::Member { goes_on } => {
                if has_left {
                    self.call(cx, |keeper, cx| keeper.leave(cx));
                } else if !goes_on {
                    // All whom it knows may be there under other names.
                    self.join(cx);
                }
                self.send_away(cx);
            }
            _ => {}
        }
    }

    /// Under another name: a name that was on the roll and is not any more never comes again.
    pub(super) fn come_again(&mut self, cx: &mut Context<'_>) {
        if mutant!("roll_comes_once") {
            return;
        }
        probe!("roll/comes_again");
        self.coming += 1;
        self.call(cx, |keeper, cx| keeper.come_again(cx));
        // One that others reach now and then stays away for longer each time: it would be let in
        // and removed without end, and its seats would never be made up.
        let often = match self.came {
            Some((at, often)) if cx.now - at < CALM => (often + 1).min(OFTEN_MAX),
            _ => 0,
        };
        self.came = Some((cx.now, often));
        let wait = if often == 0 || mutant!("roll_comes_at_once") { 0 } else { 1 << often };
        self.wishes_at = cx.now + Span::secs(wait);
    }

    fn join(&mut self, cx: &mut Context<'_>) {
        let contacts = self.contacts(cx);
        self.call(cx, |keeper, cx| keeper.join(&contacts, cx));
    }

    /// Whom a host that joins asks: those that seem to be there, others where there are none; at
    /// each look others come first.
    fn contacts(&self, cx: &mut Context<'_>) -> Vec<NodeId> {
        let hosts = self.ring.hosts().iter();
        let mut others: Vec<(bool, u64, NodeId)> = hosts
            .filter(|host| host.standing != Standing::Left && host.who.node != cx.me.node)
            .map(|host| (host.is_suspected, cx.rng.next(), host.who.node))
            .collect();
        others.sort_unstable();
        others.truncate(ROLL_SEEDS_MAX);
        others.into_iter().map(|(_, _, node)| node).collect()
    }

    /// Sends away members whose hosts have left the cluster, if it is for this one to do.
    fn send_away(&mut self, cx: &mut Context<'_>) {
        let has_left = |node: NodeId| {
            let host = self.ring.host(node);
            host.is_some_and(|host| host.standing == Standing::Left)
        };
        let members = self.configuration().members.iter();
        let members = members.filter_map(|it| Some((it.id, names::host(it)?)));
        let (gone, stay): (Vec<_>, Vec<_>) = members.partition(|(_, host)| has_left(*host));
        let own = self.name(cx.me.node);
        if !stay.iter().take(SENDERS).any(|(name, _)| *name == own) {
            return;
        }
        for (name, _) in gone {
            self.call(cx, |keeper, cx| keeper.send_away(name, cx));
        }
    }
}
