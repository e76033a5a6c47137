//! Real hosts on a network that is cut, in namespaces that the test makes. Clients read and write
//! through all hosts all the time; the judges decide.
//!
//! It needs Linux, root, `ip` and `nft`. Where something of that is missing, the tests say so on
//! standard error and pass.

mod hosts;
mod relay;
mod sandbox;

use crate::elastic::{groups, node_at, ring};
use crate::support::cluster::until;
use crate::support::load::{Load, Recorded};
use hosts::{Hosts, http, ordered};
use relay::Relay;
use sandbox::{Sandbox, address};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// How many operations must be answered before, during and after a fault.
const SOME: usize = 300;
/// How many operations each host must answer to count as one that serves.
const FEW: usize = 20;

/// Runs a test with a sandbox, from where the clients are.
fn in_sandbox(hosts: usize, test: impl FnOnce(&Sandbox) + Send) {
    let sandbox = match Sandbox::create(hosts) {
        Ok(sandbox) => sandbox,
        Err(why) => {
            // Not by a macro, so that it is seen although the test passes.
            let line = format!("skipped: no network namespaces on this machine: {why}\n");
            return std::io::stderr().write_all(line.as_bytes()).expect("it is open");
        }
    };
    // In a thread of its own, which may move and take the clients' threads along.
    let ended = std::thread::scope(|scope| {
        let run = || {
            sandbox.client().enter();
            test(&sandbox);
        };
        scope.spawn(run).join()
    });
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

/// Demands that the history holds, and that it would not with one acknowledged write less.
fn must_hold(recorded: &Recorded, answered_min: usize) {
    recorded.must_hold(answered_min);
    let report = recorded.without_a_final_write().judged();
    assert!(report.order.is_violated(), "a value from nowhere: {report}");
}

#[test]
fn a_host_joins_and_a_founder_is_drained_and_removed() {
    in_sandbox(4, |sandbox| {
        let mut hosts = Hosts::start(sandbox, 3, 4);
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        hosts.join(4, 2);
        let known = || node_at(&ring(&http(1)), &format!("{}:7411", address(4)));
        until("the others hear of it", || known().is_some());
        let joined = known().expect("as above");
        let takes_part = || groups(&ring(&http(1))).iter().any(|group| group.contains(&joined));
        until("it is a member", takes_part);
        load.more_on(&[1, 2, 3, 4], FEW);
        let first = node_at(&ring(&http(2)), &format!("{}:7411", address(1)));
        let first = first.expect("a founder is on the ring");
        ordered(&["drain", &first, "--timeout", "60s"], 2);
        load.more_on(&[1, 2, 3, 4], FEW);
        hosts.kill(&[1]);
        ordered(&["remove", &first, "--timeout", "60s"], 2);
        load.more_on(&[2, 3, 4], FEW);
        let groups = groups(&ring(&http(2)));
        let is_whole = |group: &Vec<String>| group.len() == 3 && !group.contains(&first);
        assert!(!groups.is_empty() && groups.iter().all(is_whole), "{groups:?}");
        must_hold(&load.finish(&[2, 3, 4]), 2 * SOME);
    });
}

#[test]
fn a_killed_host_is_replaced_by_the_spare() {
    in_sandbox(4, |sandbox| {
        let mut hosts = Hosts::start(sandbox, 4, 4);
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        let lost = node_at(&ring(&http(1)), &format!("{}:7411", address(3)));
        let lost = lost.expect("it is on the ring");
        hosts.kill(&[3]);
        load.more(SOME);
        until("its groups are whole without it", || {
            let groups = groups(&ring(&http(1)));
            let is_whole = |group: &Vec<String>| group.len() == 3 && !group.contains(&lost);
            !groups.is_empty() && groups.iter().all(is_whole)
        });
        load.more_on(&[1, 2, 4], FEW);
        must_hold(&load.finish(&[1, 2, 4]), 2 * SOME);
    });
}

/// Parts a cluster, once with each of these sides, and heals it again.
fn parted(all: usize, sides: &[&[usize]]) {
    in_sandbox(all, |sandbox| {
        let hosts = Hosts::start(sandbox, all, all);
        let every: Vec<usize> = (1..=all).collect();
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        for minority in sides {
            let majority: Vec<usize> =
                every.iter().copied().filter(|host| !minority.contains(host)).collect();
            sandbox.part(minority);
            hosts.until_refusing(minority);
            load.more_on(&majority, FEW);
            sandbox.heal();
            hosts.until_serving(&every);
            load.more_on(&every, FEW);
        }
        must_hold(&load.finish(&every), SOME);
    });
}

#[test]
fn three_hosts_are_parted_and_heal() {
    parted(3, &[&[3], &[1]]);
}

#[test]
fn five_hosts_are_parted_and_heal() {
    parted(5, &[&[2, 5]]);
}

#[test]
fn one_way_cuts_and_lost_packets_do_no_harm() {
    in_sandbox(3, |sandbox| {
        let hosts = Hosts::start(sandbox, 3, 3);
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        for (from, to) in [(1, 2), (3, 1)] {
            sandbox.cut_one_way(from, to);
            until("the cut is noticed", || hosts.lacks_a_peer(to));
            // Each of the two still has a majority with the third.
            load.more(SOME);
            load.more_on(&[1, 2, 3], FEW);
            sandbox.heal();
            hosts.until_serving(&[1, 2, 3]);
            load.more_on(&[1, 2, 3], FEW);
        }
        sandbox.lose(20);
        load.more(SOME / 3);
        sandbox.heal();
        hosts.until_serving(&[1, 2, 3]);
        load.more_on(&[1, 2, 3], FEW);
        must_hold(&load.finish(&[1, 2, 3]), 3 * SOME);
    });
}

#[test]
fn a_host_that_joins_behind_a_one_way_cut_is_shown() {
    in_sandbox(4, |sandbox| {
        let mut hosts = Hosts::start(sandbox, 3, 4);
        sandbox.cut_one_way(1, 4);
        hosts.join(4, 2);
        until("both say so", || [1, 4].iter().all(|&host| hosts.has_trouble(host)));
        assert!(!hosts.has_trouble(2) && !hosts.has_trouble(3));
        sandbox.heal();
        until("it is over", || (1..=4).all(|host| !hosts.has_trouble(host)));
    });
}

#[test]
fn packets_lost_between_clients_and_hosts_do_no_harm() {
    in_sandbox(3, |sandbox| {
        let hosts = Hosts::start(sandbox, 3, 3);
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        sandbox.lose_of_clients(20);
        load.more(SOME / 6);
        sandbox.heal();
        load.more_on(&[1, 2, 3], FEW);
        must_hold(&load.finish(&[1, 2, 3]), SOME);
    });
}

#[test]
fn slow_links_do_no_harm() {
    in_sandbox(3, |sandbox| {
        let door = |host| format!("{}:7411", address(host));
        let relays: Vec<Relay> = (1..=3).map(|host| Relay::to(sandbox, door(host))).collect();
        let doors: Vec<String> = relays.iter().map(Relay::address).collect();
        let mut hosts = Hosts::start_at(sandbox, &doors, 3);
        let load = Load::roaming(hosts.doors());
        load.more(SOME);
        let slow = Duration::from_millis(20);
        // One that is far away; then all are, and one is killed and comes back.
        relays.iter().for_each(|relay| relay.delay(slow / 4));
        relays[1].delay(10 * slow);
        load.more(SOME);
        load.more_on(&[1, 2, 3], FEW);
        relays.iter().for_each(|relay| relay.delay(slow));
        load.more(SOME / 3);
        hosts.kill(&[3]);
        load.more(SOME / 3);
        hosts.restart(3);
        load.more_on(&[1, 2, 3], FEW);
        relays.iter().for_each(|relay| relay.delay(Duration::ZERO));
        load.more_on(&[1, 2, 3], FEW);
        must_hold(&load.finish(&[1, 2, 3]), 2 * SOME);
    });
}

#[test]
fn a_relay_is_as_late_as_it_says() {
    in_sandbox(1, |sandbox| {
        let bind = || TcpListener::bind((address(1), 7000)).expect("the port is free");
        let door = sandbox.host(1).within(bind);
        let relay = Relay::to(sandbox, door.local_addr().expect("it is bound").to_string());
        let mut near = TcpStream::connect(relay.address()).expect("the relay listens");
        let (mut far, _) = door.accept().expect("it passes the connection on");
        let delay = Duration::from_millis(50);
        let mut round = || {
            let (began, mut byte) = (Instant::now(), [0]);
            near.write_all(b"?").expect("the relay reads");
            far.read_exact(&mut byte).expect("it comes through");
            far.write_all(b"!").expect("the relay reads");
            near.read_exact(&mut byte).expect("it comes back");
            began.elapsed()
        };
        relay.delay(delay);
        assert!(round() >= 2 * delay);
        drop(near);
        assert!(matches!(far.read(&mut [0]), Ok(0)), "the end comes through too");
    });
}

#[test]
fn a_power_failure_of_all_hosts_loses_nothing() {
    in_sandbox(3, |sandbox| {
        let mut hosts = Hosts::start(sandbox, 3, 3);
        let load = Load::roaming(hosts.doors());
        for _ in 0..2 {
            load.more(SOME);
            hosts.kill(&[1, 2, 3]);
            hosts.start_all(3);
        }
        load.more_on(&[1, 2, 3], FEW);
        must_hold(&load.finish(&[1, 2, 3]), 2 * SOME);
    });
}

/// Sends a number from one socket to another.
fn send(from: &UdpSocket, to: &UdpSocket, number: u32) {
    let to = to.local_addr().expect("it is bound");
    from.send_to(&number.to_be_bytes(), to).expect("the way is up");
}

fn received(on: &UdpSocket) -> u32 {
    let mut bytes = [0; 4];
    on.recv(&mut bytes).expect("something comes through");
    u32::from_be_bytes(bytes)
}

#[test]
fn the_sandbox_cuts_what_it_says() {
    in_sandbox(3, |sandbox| {
        let socket = |host| {
            let bind = || UdpSocket::bind((address(host), 7000)).expect("the port is free");
            let socket = sandbox.host(host).within(bind);
            socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            socket
        };
        let (one, two, three) = (socket(1), socket(2), socket(3));
        sandbox.cut_one_way(1, 2);
        send(&one, &two, 1);
        send(&three, &two, 2);
        assert_eq!(received(&two), 2, "only what was cut is lost");
        send(&two, &one, 3);
        assert_eq!(received(&one), 3, "the other way is open");
        sandbox.part(&[3]);
        send(&one, &three, 4);
        send(&three, &one, 5);
        send(&two, &one, 6);
        assert_eq!(received(&one), 6, "hosts of one side reach each other");
        sandbox.lose(20);
        // As many as the socket keeps until they are received.
        (100..300).for_each(|number| send(&two, &one, number));
        sandbox.heal();
        send(&two, &one, 7);
        let through = std::iter::repeat_with(|| received(&one)).take_while(|&number| number != 7);
        let through = through.count();
        assert!((100..200).contains(&through), "{through} of 200 came through");
        send(&one, &three, 8);
        assert_eq!(received(&three), 8, "what was lost does not come later");
    });
}
