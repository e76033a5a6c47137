//! One replica of a machine with its disk, and a log that the tests write.

use crate::smr::keys::encode;
use crate::smr::{Changes, Client, Entry, Executed, Machine, Origin, Part, Replicated};
use crate::testing::disk::{Disk, Kept};
use crate::vsr::{self, Machine as _, Op, Store, Stored};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use std::collections::BTreeSet;
use std::vec::Vec;

const GROUP: GroupId = GroupId(3);

/// A replica.
pub struct Member<M: Machine> {
    pub machine: Replicated<M>,
    pub disk: Disk,
    /// The last entry that it has executed.
    pub op: Op,
}

/// A client: a node in one of its starts.
pub fn client(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

/// An entry with commands of one client, numbered from the first one on.
pub fn entry<M: Machine>(at_ms: u64, from: Origin, commands: &[M::Command]) -> Bytes {
    let part = Part { from: Some(from), commands: commands.to_vec() };
    Entry::<M> { at_ms, parts: Vec::from([part]) }.bytes()
}

/// A client whose answers are all on their way.
pub fn from(client: Incarnation, first: u64) -> Origin {
    Origin { client, first, acked: 0 }
}

impl<M: Machine> Member<M> {
    /// A replica of a group that begins.
    pub fn new() -> Member<M> {
        let machine = Replicated::new(GROUP);
        let mut member = Member { machine, disk: Disk::default(), op: Op(0) };
        assert_eq!(member.load(), Stored::default());
        member
    }

    fn load(&mut self) -> Stored {
        self.call(vsr::Machine::load)
    }

    /// Calls the machine; what it writes is there afterwards.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut Replicated<M>, &mut Store<'_>) -> T) -> T {
        let mut out = Vec::new();
        let answer = call(&mut self.machine, &mut Store::new(&self.disk, &mut out));
        for action in out {
            let vsr::Action::Write { class, key, value } = action else {
                panic!("a machine only writes, and does not {action:?}")
            };
            self.disk.write(class, &key, value.as_ref());
        }
        answer
    }

    /// Executes the next entry.
    pub fn execute(&mut self, entry: &Bytes) {
        assert!(self.machine.is_command(entry), "a log has what can be executed");
        self.op = Op(self.op.0 + 1);
        let op = self.op;
        self.call(|machine, store| machine.apply(op, entry, store));
    }

    /// Executes commands of a client as the next entry, and returns their answers.
    pub fn ask(&mut self, at_ms: u64, from: Origin, commands: &[M::Command]) -> Vec<M::Output> {
        self.execute(&entry::<M>(at_ms, from, commands));
        let numbers = (from.first..).take(commands.len());
        let client = self.client(from.client);
        numbers.map(|number| client.reply(number).expect("it was executed").1.clone()).collect()
    }

    pub fn client(&self, client: Incarnation) -> &Client<M> {
        self.machine.client(client).expect("something of it was executed")
    }

    pub fn changes(&self) -> &Changes<M::Change> {
        self.machine.changes()
    }

    /// The changes behind one, as far as they are known.
    pub fn changes_after(&self, seen: u64) -> Option<Vec<M::Change>> {
        Some(self.changes().after(seen)?.map(|(_, change)| change.clone()).collect())
    }

    pub fn executed(&mut self) -> Vec<Executed> {
        self.machine.take_executed()
    }

    /// Stores what it has.
    pub fn store(&mut self) {
        let op = self.op;
        self.call(|machine, store| machine.store(op, 1, store));
        assert_eq!((self.machine.stored(), self.machine.unstored()), (op, 0));
    }

    /// Restarts it; it has what it has stored, and is at that entry.
    pub fn restart(&mut self) {
        self.machine = Replicated::new(GROUP);
        let stored = self.load();
        assert_eq!(stored.whole, stored.newest, "what is stored is of one entry");
        self.op = stored.whole;
    }

    /// Restarts it with the disk as it was.
    pub fn fall_back(&mut self, kept: &Kept) {
        self.disk.fall_back(kept);
        self.restart();
    }

    /// A copy begins of what is there now.
    pub fn head(&mut self) -> Bytes {
        let op = self.op;
        self.call(|machine, _| machine.head(op))
    }

    /// A page of a copy: its items, and where the next one begins.
    pub fn page(&self, at: Op, cursor: &Bytes, bytes_max: usize) -> Option<vsr::Page> {
        self.machine.page(at, cursor, bytes_max, &self.disk)
    }

    /// Puts an object in its place, of which no command knows: as a page of a copy does.
    pub fn put(&mut self, key: Bytes, object: M::Object) {
        let items = encode(&Vec::from([(key, object)]));
        assert!(self.call(|machine, store| machine.install(&items, store)));
    }

    /// Becomes what another one is now. Between two pages the other goes on.
    pub fn copy(&mut self, source: &mut Member<M>, mut goes_on: impl FnMut(&mut Member<M>)) {
        let (at, head) = (source.op, source.head());
        assert!(self.call(|machine, store| machine.begin_install(at, &head, store)));
        let mut cursor = Some(Bytes::new());
        while let Some(from) = cursor {
            goes_on(source);
            source.call(|machine, _| machine.keep(&BTreeSet::from([at])));
            let page = source.page(at, &from, 1).expect("the copy is kept");
            assert!(self.call(|machine, store| machine.install(&page.items, store)));
            cursor = page.next;
        }
        while !self.call(|machine, store| machine.clear_away(store)) {}
        self.call(|machine, store| machine.end_install(at, store));
        source.call(|machine, _| machine.keep(&BTreeSet::new()));
        self.op = at;
    }

    /// Asserts that another one is the same: objects, time, clients, and what follows the last
    /// change.
    pub fn is_as(&self, other: &Member<M>) {
        assert_eq!(self.op, other.op);
        assert_eq!(self.machine.objects(), other.machine.objects());
        assert_eq!(self.machine.now_ms(), other.machine.now_ms());
        assert_eq!(self.changes().last(), other.changes().last());
        for node in 0..8 {
            for start in 0..4 {
                let client = client(node, start);
                let [one, two] = [self, other].map(|it| it.machine.client(client));
                assert_eq!(one.map(|it| it.done), two.map(|it| it.done));
                assert_eq!(one.map(|it| &it.replies), two.map(|it| &it.replies));
                assert_eq!(self.machine.has_ended(client), other.machine.has_ended(client));
            }
        }
    }
}
