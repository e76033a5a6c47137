//! The host behind the door: it answers in any order, fails, tells of nodes and ends things.

use crate::hostile::told;
use crate::wire::split;
use crate::world::{World, changed, opened, refused, replied};
use quorate_doors::Shortage;
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Failure, Item, SessionEvent, Told, What};
use quorate_kernel::watch::Event;

/// A client's bytes on their way to a door, and the host behind that.
pub struct Host<'a> {
    world: World,
    bytes: &'a [u8],
    /// How many bytes have come.
    came: usize,
    is_open: bool,
    zxid: u64,
    /// All that the client was sent.
    answers: Vec<u8>,
}

/// The header of an answer: number of the request, zxid, code.
pub fn header(frame: &[u8]) -> (i32, i64, i32) {
    let int = |at: usize| i32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
    let zxid = i64::from_be_bytes(frame[4..12].try_into().expect("eight bytes"));
    (int(0), zxid, int(12))
}

/// The code of what an act is told in [`told`].
pub fn code_of(act: &Act, told: &Result<Told, Failure>) -> i32 {
    match told {
        Ok(_) => 0,
        Err(Failure::BadVersion) => -103,
        Err(Failure::AuthFailed) => -115,
        other => panic!("{act:?} is not told {other:?}"),
    }
}

impl<'a> Host<'a> {
    pub fn new(world: World, bytes: &'a [u8]) -> Host<'a> {
        Host { world, bytes, came: 0, is_open: false, zxid: 9, answers: Vec::new() }
    }

    /// Until all has come, or the connection ends.
    pub fn run(&mut self, rng: &mut Rng) {
        while self.came < self.bytes.len() && !self.world.session.is_closing() {
            match rng.below(12) {
                0..=4 if self.world.session.wants_input() => self.receive(rng),
                0..=7 if self.is_open => self.complete(rng),
                8 if self.is_open => self.change(rng),
                9 => self.world.session.on_unread(&mut self.world.asked),
                10 => self.take(),
                _ => self.go_on(rng),
            }
            self.check();
        }
    }

    fn receive(&mut self, rng: &mut Rng) {
        let most = [1, 30, 300, 100_000][rng.below(4) as usize];
        let left = &self.bytes[self.came..];
        let piece = &left[..left.len().min(1 + rng.below(most) as usize)];
        self.came += piece.len();
        self.world.receive(piece);
    }

    /// Opens the session that is asked for, or ends something, seldom.
    fn go_on(&mut self, rng: &mut Rng) {
        let is_asked = !self.world.asked.watches.is_empty();
        match rng.below(60) {
            0 if is_asked => {
                let expired = Event::Session(SessionEvent::Expired);
                self.world.tell(Outcome::More(vec![expired]));
            }
            1 if is_asked => self.world.tell(refused(Refusal::Stopping)),
            2 if is_asked => self.world.tell(refused(Refusal::NoSession)),
            3 => self.world.session.finish(),
            4 => self.world.session.refuse(&Shortage::Unfinished { since: Span::secs(1) }),
            _ if is_asked && !self.is_open => {
                self.is_open = true;
                self.world.tell(opened());
            }
            _ => {}
        }
    }

    /// Ends one of the operations in hand, if there is one.
    fn complete(&mut self, rng: &mut Rng) {
        const FAILURES: [Failure; 6] = [
            Failure::NoNode,
            Failure::NoAuth,
            Failure::SessionExpired,
            Failure::SessionMoved,
            Failure::Quota,
            Failure::NotFollowed,
        ];
        let count = self.world.asked.operations.len() as u64;
        if count == 0 {
            return;
        }
        let index = rng.below(count) as usize;
        let told = self.sound(index);
        let outcome = match rng.below(100) {
            0..=4 => replied(self.zxid, Err(*rng.pick(&FAILURES).expect("there are some"))),
            5 => refused(Refusal::OutcomeUnknown),
            6 => refused(Refusal::TooLarge { what: "value", length: 2, limit: 1 }),
            7 => Outcome::More(Vec::new()),
            8 => replied(self.zxid, Ok(Told::Count(1))),
            _ => replied(self.zxid, told),
        };
        self.zxid += rng.below(2);
        self.world.complete(index, outcome);
    }

    /// What an operation is told, which a client could have asked for with what it has sent.
    fn sound(&self, index: usize) -> Result<Told, Failure> {
        let act = &self.world.asked.operations[index].2.act;
        let (items, bytes) = size(act);
        // Nothing is shorter than the number of an element. A byte that is no text becomes three.
        assert!(items * 9 <= self.came && bytes <= 3 * self.came, "{act:?} of {}", self.came);
        told(act)
    }

    fn change(&mut self, rng: &mut Rng) {
        let path = *rng.pick(&["/", "/a", "/a/b"]).expect("there are some");
        let what = [What::Created, What::Deleted, What::Data, What::Children];
        self.world.tell(changed(path, *rng.pick(&what).expect("there are some")));
    }

    fn take(&mut self) {
        let bytes = self.world.take();
        self.answers.extend_from_slice(&bytes);
    }

    fn check(&self) {
        let begun = self.world.session.begun_bytes(&self.world.input);
        assert!(begun <= (4 + JUTE_FRAME_BYTES_MAX).max(self.world.input.len()));
        let held = self.world.session.held_bytes();
        assert!(held <= 64 * (1024 + self.came), "{held} bytes are held of {}", self.came);
    }

    /// All that is in hand is answered, in its order; then nothing is held, and the client was
    /// answered as it has asked, as far as its connection went.
    pub fn end(mut self, rng: &mut Rng) -> World {
        loop {
            if !self.is_open && !self.world.asked.watches.is_empty() {
                self.is_open = true;
                self.world.tell(opened());
            } else if !self.world.asked.operations.is_empty() {
                let told = self.sound(0);
                self.world.complete(0, replied(self.zxid, told));
            } else if self.came < self.bytes.len() && self.world.session.wants_input() {
                self.receive(rng);
            } else {
                break;
            }
            self.check();
        }
        self.take();
        assert_eq!(self.world.session.held_bytes(), 0, "nothing waits");
        let is_over = self.world.session.is_closing();
        assert!(is_over || self.world.session.wants_input(), "it goes on or ends");
        self.judge(is_over);
        self.world
    }

    fn judge(&self, is_over: bool) {
        let asked = asked(self.bytes);
        let Some(asked) = asked else { return };
        let (frames, rest) = split(&self.answers);
        assert!(rest.is_empty(), "half an answer: {rest:?}");
        let mut answered = Vec::new();
        // The first one says which session it is.
        for frame in frames.iter().skip(1) {
            assert!(frame.len() >= 16, "an answer has a header");
            let (xid, zxid, _) = header(frame);
            if zxid >= 0 {
                answered.push(xid);
            }
        }
        assert!(asked.starts_with(&answered), "{answered:?} of {asked:?}, in their order");
        assert!(is_over || answered == asked, "all of {asked:?} are answered: {answered:?}");
    }
}

/// The numbers of the requests in a client's bytes, as far as frames are whole; none if it begins
/// with a word.
fn asked(bytes: &[u8]) -> Option<Vec<i32>> {
    if bytes.iter().take(4).all(u8::is_ascii_lowercase) {
        return None;
    }
    let (mut left, mut all, mut is_first) = (bytes, Vec::new(), true);
    while let Some((length, rest)) = left.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        if length > JUTE_FRAME_BYTES_MAX || (!is_first && length < 8) {
            break;
        }
        if !is_first {
            all.push(i32::from_be_bytes(frame[..4].try_into().expect("four bytes")));
        }
        (left, is_first) = (rest, false);
    }
    Some(all)
}

/// How many things an act is about, and how many bytes they have.
fn size(act: &Act) -> (usize, usize) {
    let of = |item: &Item| {
        let acl = match item {
            Item::Create { acl, .. } | Item::SetAcl { acl, .. } => &acl[..],
            _ => &[],
        };
        let ids = acl.iter().map(|acl| acl.id.scheme.len() + acl.id.id.len());
        (acl.len(), item.path().len() + item.data_bytes() + ids.sum::<usize>())
    };
    match act {
        Act::One(item) => of(item),
        Act::All(items) | Act::Each(items) => {
            let all = items.iter().map(of);
            all.fold((0, 0), |sum, (count, bytes)| (sum.0 + 1 + count, sum.1 + bytes))
        }
        Act::Refollow(refollow) => {
            let lists = [&refollow.data, &refollow.absent, &refollow.children];
            let more = [&refollow.persistent, &refollow.recursive];
            let paths = lists.into_iter().chain(more).flatten();
            let (mut count, mut bytes) = (0, 0);
            for path in paths {
                // A path has a length and a byte at least.
                (count, bytes) = (count + 5, bytes + path.len());
            }
            (count / 9, bytes)
        }
        Act::Authenticate { scheme, credential } => (0, scheme.len() + credential.len()),
        Act::Sync { path } | Act::Follow { path, .. } | Act::Unfollow { path, .. } => {
            (0, path.len())
        }
        Act::WhoAmI | Act::Ping | Act::Close => (0, 0),
    }
}
