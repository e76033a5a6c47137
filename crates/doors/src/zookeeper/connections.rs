//! What the door knows of each of its connections, for the word `cons`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::{Cell, RefCell};
use quorate_kernel::time::{Span, WallTime};
use quorate_kernel::tree::{Act, Item, SessionId, Zxid};

/// All connections of the door, by their numbers. They are all on one thread.
#[derive(Default)]
pub(super) struct Connections {
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    /// How many there were.
    count: Cell<u64>,
}

impl Connections {
    /// A client has connected.
    pub fn open(&self, peer: String) -> Rc<Connection> {
        let id = self.count.get();
        self.count.set(id + 1);
        let connection = Rc::new(Connection::new(id, peer));
        self.open.borrow_mut().insert(id, Rc::clone(&connection));
        connection
    }

    /// It is gone.
    pub fn close(&self, id: u64) {
        self.open.borrow_mut().remove(&id);
    }

    /// A line for each, that of the one who asks first; with all that is known, or with what has
    /// come and gone alone.
    pub fn lines(&self, asking: u64, is_brief: bool) -> String {
        let all = self.open.borrow();
        let own = all.get(&asking).into_iter();
        let others = all.iter().filter(|(id, _)| **id != asking).map(|(_, other)| other);
        let line = |connection: &Rc<Connection>| connection.line(asking, is_brief);
        own.chain(others).map(line).collect()
    }
}

/// What has come and gone on one of them, and what was last asked.
pub(super) struct Connection {
    id: u64,
    peer: String,
    /// When its first bytes came, in milliseconds since 1970; 0 before.
    established: Cell<i64>,
    session: Cell<SessionId>,
    timeout_ms: Cell<u32>,
    received: Cell<u64>,
    sent: Cell<u64>,
    queued: Cell<usize>,
    last: Cell<Last>,
    /// The least, the sum and the most time in milliseconds until an answer, and how many there
    /// were.
    latency_ms: Cell<[u64; 3]>,
    answers: Cell<u64>,
}

/// What was last asked and answered.
#[derive(Clone, Copy)]
struct Last {
    /// ZooKeeper's word for what was asked.
    asked: &'static str,
    /// The number of the request.
    xid: i32,
    /// The newest change that the client was told of.
    zxid: u64,
    /// When it was answered, in milliseconds since 1970.
    at: i64,
    latency_ms: u64,
}

impl Connection {
    fn new(id: u64, peer: String) -> Connection {
        let last = Last { asked: "NA", xid: 0, zxid: u64::MAX, at: 0, latency_ms: 0 };
        Connection {
            id,
            peer,
            established: Cell::default(),
            session: Cell::default(),
            timeout_ms: Cell::default(),
            received: Cell::default(),
            sent: Cell::default(),
            queued: Cell::default(),
            last: Cell::new(last),
            latency_ms: Cell::default(),
            answers: Cell::default(),
        }
    }

    /// Its number among all of the door.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where its client is.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Bytes have come.
    pub fn on_bytes(&self, now: WallTime) {
        if self.established.get() == 0 {
            self.established.set(now.0);
        }
    }

    /// It has a session.
    pub fn on_session(&self, session: SessionId, timeout_ms: u32) {
        self.session.set(session);
        self.timeout_ms.set(timeout_ms);
        self.last.set(Last { asked: "SESS", ..self.last.get() });
    }

    /// A frame or a word was read.
    pub fn on_received(&self) {
        self.received.set(self.received.get() + 1);
    }

    /// A frame was written, or waits for earlier ones.
    pub fn on_sent(&self) {
        self.sent.set(self.sent.get() + 1);
    }

    /// So many requests are in hand.
    pub fn on_queued(&self, count: usize) {
        self.queued.set(count);
    }

    /// Something was asked.
    pub fn on_asked(&self, xid: i32, act: &Act) {
        self.last.set(Last { asked: word(act), xid, ..self.last.get() });
    }

    /// An answer came after so long, and rests on a change.
    pub fn on_answered(&self, zxid: Zxid, after: Span, now: WallTime) {
        let latency_ms = after.as_millis();
        let last = self.last.get();
        let zxid = if zxid.0 == 0 { last.zxid } else { zxid.0 };
        self.last.set(Last { zxid, at: now.0, latency_ms, ..last });
        let [least, sum, most] = self.latency_ms.get();
        let least = if self.answers.get() == 0 { latency_ms } else { least.min(latency_ms) };
        self.latency_ms.set([least, sum + latency_ms, most.max(latency_ms)]);
        self.answers.set(self.answers.get() + 1);
    }

    /// The line of it, as ZooKeeper has it. There, whoever asks for the list and has no session has
    /// the short form, which Go's client takes for no line at all.
    fn line(&self, asking: u64, is_brief: bool) -> String {
        let Connection { id, peer, .. } = self;
        let established = self.established.get();
        let reads = u8::from(*id != asking);
        let (queued, received, sent) = (self.queued.get(), self.received.get(), self.sent.get());
        let brief = format!(" /{peer}[{reads}](queued={queued},recved={received},sent={sent}");
        if is_brief {
            return brief + ")\n";
        }
        let Last { asked, xid, zxid, at, latency_ms } = self.last.get();
        let [least, sum, most] = self.latency_ms.get();
        let average = sum.checked_div(self.answers.get()).unwrap_or(0);
        let (session, timeout_ms) = (self.session.get().0, self.timeout_ms.get());
        format!(
            "{brief},sid={session:#x},lop={asked},est={established},to={timeout_ms},\
             lcxid={xid:#x},lzxid={zxid:#x},lresp={at},llat={latency_ms},minlat={least},\
             avglat={average},maxlat={most})\n"
        )
    }
}

/// ZooKeeper's word for what is asked.
fn word(act: &Act) -> &'static str {
    match act {
        Act::One(Item::Create { .. }) => "CREA",
        Act::One(Item::Delete { .. }) => "DELE",
        Act::One(Item::Set { .. }) => "SETD",
        Act::One(Item::SetAcl { .. }) => "SETA",
        Act::One(Item::Check { .. }) => "CHEK",
        Act::One(Item::Exists { .. }) => "EXIS",
        Act::One(Item::Get { .. }) => "GETD",
        Act::One(Item::Children { .. }) => "GETC",
        Act::One(Item::GetAcl { .. }) => "GETA",
        Act::One(Item::Ephemerals { .. }) => "GETE",
        Act::One(Item::CountBelow { .. }) => "GACN",
        Act::All(_) => "MULT",
        Act::Each(_) => "MLTR",
        Act::Sync { .. } => "SYNC",
        Act::Follow { .. } => "ADDW",
        Act::Unfollow { .. } => "REMW",
        Act::Refollow(_) => "SETW",
        Act::Authenticate { .. } => "AUTH",
        Act::WhoAmI => "WHOA",
        Act::Ping => "PING",
        Act::Close => "CLOS",
    }
}
