//! Ephemeral nodes end with their session, and not before.

use super::*;

fn of(session: u64, zxid: u64) -> Stat {
    Stat { ephemeral_owner: SessionId(session), ..made(zxid, "") }
}

/// Two clients; the first has an ephemeral node.
fn begun() -> (Story, Client, Client) {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let other = story.open(2, 2);
    story.tell(one, ephemeral("/e"), 3, created("/e", of(1, 3)));
    story.tell(other, exists("/e", false), 3, Ok(Told::Stat(of(1, 3))));
    (story, one, other)
}

#[test]
fn a_node_ends_with_its_session() {
    let (mut story, one, other) = begun();
    story.tell(one, Act::Close, 4, Ok(Told::Done));
    let mut stays = Story { record: story.record.clone(), now: story.now };
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    story.holds();
    stays.tell(other, exists("/e", false), 4, Ok(Told::Stat(of(1, 3))));
    stays.is_wrong("must have been told that there is no such node");
}

#[test]
fn a_session_may_expire_when_it_was_silent() {
    let (mut story, one, other) = begun();
    story.wait(100);
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    story.expired(one.on);
    let again = story.connect(1, Some(one.session));
    story.expired(again);
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    story.holds();
}

#[test]
fn a_session_that_was_not_silent_does_not_end() {
    let (mut story, _, other) = begun();
    story.wait(50);
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    story.is_wrong("must have been told Stat");
}

#[test]
fn what_a_host_answers_by_itself_keeps_no_session() {
    for has_session_reads in [true, false] {
        let (mut story, one, other) = begun();
        story.read_here(has_session_reads);
        story.wait(50);
        story.tell(one, exists("/e", false), 3, Ok(Told::Stat(of(1, 3))));
        story.wait(50);
        story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
        match has_session_reads {
            true => story.holds(),
            false => story.is_wrong("must have been told Stat"),
        }
    }
}

#[test]
fn nobody_sees_a_node_of_a_session_that_is_known_to_have_ended() {
    let (mut story, one, other) = begun();
    story.wait(200);
    story.expired(one.on);
    story.tell(other, exists("/e", false), 4, Ok(Told::Stat(of(1, 3))));
    // The end of the session may be change 4: what is seen of its node says otherwise.
    story.is_wrong("must have been told that there is no such node");
}

#[test]
fn a_node_does_not_vanish_while_its_session_is_served() {
    let (mut story, one, other) = begun();
    story.wait(200);
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    let mut served = Story { record: story.record.clone(), now: story.now };
    story.tell(one, sync(), 4, Err(Failure::SessionExpired));
    story.holds();
    served.tell(one, sync(), 4, Ok(Told::Done));
    served.is_wrong("must have been told Stat");
}

#[test]
fn nothing_is_done_for_a_session_that_has_ended() {
    let (mut story, one, other) = begun();
    story.tell(one, Act::Close, 4, Ok(Told::Done));
    story.tell(one, create("/a", ""), 5, created("/a", made(5, "")));
    story.tell(other, sync(), 5, Ok(Told::Done));
    story.is_wrong("must have been told that the session has expired");
}

#[test]
fn a_close_of_unknown_outcome_explains_what_is_gone() {
    let (mut story, one, other) = begun();
    let asked = story.ask(one, Act::Close);
    story.unknown(asked);
    story.tell(other, exists("/e", false), 4, Err(Failure::NoNode));
    story.holds();
}

#[test]
fn in_another_life_of_the_tree_sessions_are_over() {
    let (mut story, _, other) = begun();
    let life = 1 << 44;
    story.tell(other, sync(), life, Err(Failure::SessionExpired));
    let third = story.open(3, life + 1);
    story.tell(third, exists("/e", false), life + 1, Ok(Told::Stat(of(1, 3))));
    story.tell(third, exists("/e", false), life + 2, Err(Failure::NoNode));
    story.holds();
    story.tell(other, sync(), life + 2, Ok(Told::Done));
    story.is_wrong("must have been told that the session has expired");
}
