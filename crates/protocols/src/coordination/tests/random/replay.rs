//! What the log says: all that was executed, in its order, each command by itself, and what was
//! seen between them.

use crate::coordination::GROUP;
use crate::coordination::keys::META;
use crate::coordination::tests::world::World;
use crate::coordination::tree::{self, Answer, Change, Command, Question, Tree, ask};
use crate::smr::tests::member::Member;
use crate::smr::{Entry, Origin, Part};
use quorate_kernel::ids::Ticket;
use quorate_kernel::tree::{SessionId, TreeReply, What};
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

/// What was read, by the change that it shows.
pub type Reads = BTreeMap<u64, Vec<(Ticket, Question, TreeReply)>>;

/// All that was executed.
pub struct Replay {
    member: Member<Tree>,
    /// How many changes were looked at.
    looked: u64,
    /// The number of the last change of the tree.
    zxid: u64,
    /// What clients' commands were answered.
    pub executed: Vec<(Command, Answer)>,
    /// Sessions that ended because somebody was silent, and when that was proposed, in
    /// milliseconds.
    pub ends: Vec<(SessionId, u64)>,
    /// What became of nodes: by which change, where, and what.
    pub changes: Vec<(u64, String, What)>,
}

impl Replay {
    /// Executes the log of a world. What was read must be what there was.
    pub fn of(world: &World, mut reads: Reads) -> Replay {
        let member = Member::new();
        let (executed, changes) = (Vec::new(), Vec::new());
        let (ends, looked, zxid) = (Vec::new(), 0, 0);
        let mut replay = Replay { member, looked, zxid, executed, ends, changes };
        replay.compare(&mut reads);
        for bytes in world.logs[&GROUP].values().flatten() {
            let entry = Entry::<Tree>::of(bytes).expect("it is one");
            for part in entry.parts {
                for (command, at) in part.commands.into_iter().zip(0..) {
                    let from = part.from.map(|it| Origin { first: it.first + at, ..it });
                    replay.execute(entry.at_ms, from, command);
                    replay.compare(&mut reads);
                }
            }
        }
        assert!(reads.is_empty(), "what was read was there: {reads:?}");
        tree::check(replay.member.machine.objects());
        replay
    }

    fn execute(&mut self, at_ms: u64, from: Option<Origin>, command: Command) {
        let done = |replay: &Replay| {
            let client = from.and_then(|from| replay.member.machine.client(from.client));
            client.map_or(0, |client| client.done)
        };
        let before = done(self);
        let is_end = matches!(command, Command::Expire { .. });
        let commands = Vec::from([command.clone()]);
        let parts = Vec::from([Part { from, commands }]);
        self.member.execute(&Entry::<Tree> { at_ms, parts }.bytes());
        if let Some(from) = from.filter(|_| done(self) > before) {
            let reply = self.member.client(from.client).reply(from.first);
            self.executed.push((command, reply.expect("it was executed").1.clone()));
        }
        let changes = self.member.changes_after(self.looked).expect("few are told");
        self.looked += changes.len() as u64;
        for change in changes {
            match change {
                Change::Node { zxid, path, what } | Change::Guarded { zxid, path, what, .. } => {
                    self.changes.push((zxid.0, path, what));
                }
                Change::Session { session, is_moved: false, .. } if is_end => {
                    self.ends.push((session, at_ms));
                }
                Change::Session { .. } => {}
            }
        }
        self.zxid = newest(&self.member);
    }

    /// What was read at this moment.
    fn compare(&mut self, reads: &mut Reads) {
        for (ticket, question, reply) in reads.remove(&self.zxid).into_iter().flatten() {
            let answer = self.member.machine.look(|on| ask(&question, on));
            assert_eq!(Answer::Told(reply), answer, "{ticket:?} has asked {question:?}");
        }
    }
}

/// The number of the last change.
fn newest(member: &Member<Tree>) -> u64 {
    match member.machine.objects().get(&META) {
        Some(tree::Object::Meta(meta)) => meta.zxid.0,
        _ => 0,
    }
}
