//! What time brings to a primary: gateways that are gone, and nodes that end by themselves.
//!
//! No replica looks at a clock. The primary proposes, by its own monotonic clock, guarded by what it
//! has seen; a new one waits anew. So a session may last longer than its client can be silent, and
//! never ends earlier.

use crate::coordination::lane::{Context, Coordination};
use crate::coordination::tree::{Command, reapable, sessions};
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// How often it is looked.
const LOOKED: Span = Span::secs(1);
/// The most that is proposed at a time.
const PROPOSED_MAX: usize = 1024;

impl Coordination {
    /// Time has passed.
    pub(crate) fn tick_primary(&mut self, cx: &mut Context<'_>) {
        self.confirm_touches(cx);
        let Some(hosted) = &mut self.hosted else { return };
        let Some(primary) = &mut hosted.primary else { return };
        if cx.now - primary.looked < LOOKED {
            return;
        }
        primary.looked = cx.now;
        let heard = |gateway: Incarnation| -> Time {
            let served = primary.gateways.get(&gateway.node);
            let heard = served.filter(|it| it.client == gateway).map(|it| it.heard);
            heard.unwrap_or(primary.began).max(primary.began)
        };
        let objects = hosted.machine.objects();
        let over = |timeout_ms: u32, gateway| {
            let patience = match mutant!("tree_new_primary_waits_no_more") {
                true => Span(0),
                false => Span::millis(u64::from(timeout_ms)),
            };
            cx.now - heard(gateway) >= patience
        };
        let gone = sessions(objects).filter(|(_, it)| over(it.timeout_ms, it.gateway));
        let mut commands: Vec<Command> = gone
            .take(PROPOSED_MAX)
            .map(|(session, it)| Command::Expire { session, attached: it.attached })
            .collect();
        let now_ms = u64::try_from(cx.wall.0).unwrap_or_default();
        let found = reapable(objects, &hosted.reaped, PROPOSED_MAX, now_ms);
        hosted.reaped = found.next.unwrap_or_default();
        let due = found.due.into_iter();
        commands.extend(due.map(|(path, seen)| Command::Reap { path, seen }));
        // What was proposed a second ago and is not executed is proposed again: both are guarded.
        commands.into_iter().for_each(|command| primary.add_own(command));
    }
}
