//! What a connection remembers between its commands.

use super::reply::Protocol;
use super::transaction::Queue;
use super::watched::Watched;
use crate::door::Connected;
use alloc::format;
use alloc::string::String;
use quorate_kernel::time::Time;

/// Whether replies are sent, as `CLIENT REPLY` sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None.
    Off,
    /// `CLIENT REPLY SKIP` was the last command: neither it nor the next one is answered.
    Armed,
    /// All but that of the next command.
    Skip,
}

/// What was refused of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// The `MULTI`: its client may not know yet, and has no transaction.
    Multi,
    /// A command behind it. Those that follow are queued as in Redis, for nothing.
    Command,
}

/// What a connection remembers between its commands.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) protocol: Protocol,
    /// The number of the keyspace it works on.
    pub(crate) keyspace: usize,
    pub(crate) name: String,
    pub(crate) library_name: String,
    pub(crate) library_version: String,
    pub(crate) replies: ReplyMode,
    /// What it has sent since a `MULTI`.
    pub(crate) queue: Option<Queue>,
    /// What `EXEC` shall check.
    pub(crate) watched: Watched,
    /// What was refused, so that what follows, up to `EXEC` or `DISCARD`, must not run on its own.
    pub(crate) aborted: Option<Aborted>,
    /// The client wants to be told what happens.
    pub(crate) is_following: bool,
    /// The client asked to be closed.
    pub(crate) is_leaving: bool,
    pub(crate) peer: String,
    pub(crate) local: String,
    pub(crate) last_command: &'static str,
    pub(crate) now: Time,
    first_input: Option<Time>,
    last_input: Time,
}

impl Client {
    /// A client that has said nothing yet.
    pub(crate) fn new(connected: Connected) -> Client {
        let Connected { id, peer, local, .. } = connected;
        Client { id, peer, local, ..Client::default() }
    }

    /// Bytes arrived.
    pub(crate) fn on_input(&mut self, now: Time) {
        self.now = now;
        self.last_input = now;
        self.first_input.get_or_insert(now);
    }

    /// Whether the reply of the command that just ran is not sent; `skip` tells whether the one
    /// before it asked for that.
    pub(crate) fn take_silence(&mut self, skip: bool) -> bool {
        match self.replies {
            ReplyMode::On => false,
            ReplyMode::Off => true,
            ReplyMode::Armed => {
                self.replies = ReplyMode::Skip;
                true
            }
            ReplyMode::Skip => {
                self.replies = ReplyMode::On;
                skip
            }
        }
    }

    /// Nothing is queued any more. Returns what was, and the keyspace that was chosen in it: the
    /// connection works on the one again on which it did before.
    pub(crate) fn end_queue(&mut self) -> Option<(Queue, usize)> {
        let queue = self.queue.take()?;
        let chosen = core::mem::replace(&mut self.keyspace, queue.begun_in());
        Some((queue, chosen))
    }

    /// Whether a `MULTI` was done, and no `EXEC` or `DISCARD` since.
    pub(crate) fn is_in_multi(&self) -> bool {
        self.queue.is_some() || self.aborted == Some(Aborted::Command)
    }

    /// Back to how the connection started, as `RESET` does.
    pub(crate) fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.keyspace = 0;
        self.name.clear();
        self.replies = ReplyMode::On;
        self.aborted = None;
        self.queue = None;
        self.watched = Watched::default();
        self.is_following = false;
    }

    /// The line of this client in `CLIENT LIST`.
    pub(crate) fn describe(&self) -> String {
        let seconds = |since: Time| (self.now - since).0 / 1_000_000_000;
        format!(
            "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags=N db={} sub={} psub=0 ssub=0 \
             multi={} watch={} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=0 events=r cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}\n",
            self.id,
            self.peer,
            self.local,
            self.name,
            seconds(self.first_input.unwrap_or(self.now)),
            seconds(self.last_input),
            self.keyspace,
            u8::from(self.is_following),
            self.queue.as_ref().map_or(-1, |queue| queue.len() as i64),
            self.watched.len(),
            self.last_command,
            self.protocol.number(),
            self.library_name,
            self.library_version,
        )
    }
}
