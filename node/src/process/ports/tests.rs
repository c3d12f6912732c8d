//! Ports follow the documented steps, and a taken one is named.

use kelp_seams::SeededRng;

use super::*;

#[test]
fn ports_follow_the_documented_steps() {
    let ports = from_base(4800, 3).unwrap();
    let last = ports.last().unwrap();
    assert_eq!((last.client, last.peer, last.http), (4820, 4821, 4822));
}

#[test]
fn a_base_too_high_is_refused() {
    let beyond = |option, base| Err(PortError::BeyondLast { option, base });
    assert_eq!(from_base(65_530, 3), beyond("base-port", 65_530));
    let mut ports = from_base(4800, 3).unwrap();
    let resp = add_resp(&mut ports, 65_534, &SeededRng::new(7));
    assert_eq!(resp.map(|()| Vec::new()), beyond("resp-port", 65_534));
    assert!(from_base(65_533, 1).is_ok());
}

#[test]
fn a_taken_port_is_named() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = listener.local_addr().unwrap().port();
    let ports = [NodePorts {
        client: taken,
        peer: taken,
        http: taken,
        resp: None,
    }];
    assert_eq!(check_free(&ports), Err(PortError::Taken(taken)));
}

#[test]
fn redis_ports_count_up_from_the_first_one_and_meet_no_other() {
    let mut ports = from_base(4800, 3).unwrap();
    add_resp(&mut ports, 6379, &SeededRng::new(7)).unwrap();
    let resp: Vec<_> = ports.iter().map(|ports| ports.resp).collect();
    assert_eq!(resp, [Some(6379), Some(6380), Some(6381)]);
    let overlap = add_resp(&mut ports, 4810, &SeededRng::new(7));
    assert_eq!(overlap, Err(PortError::Overlap { base: 4810 }));
}

#[test]
fn ports_are_as_wanted_when_the_first_ones_are() {
    let mut ports = from_base(4800, 3).unwrap();
    add_resp(&mut ports, 6379, &SeededRng::new(7)).unwrap();
    for (base, resp, expected) in [
        (None, None, true),
        (Some(4800), Some(6379), true),
        (Some(0), Some(0), true),
        (Some(4801), None, false),
        (None, Some(6380), false),
    ] {
        assert_eq!(are_as_wanted(&ports, base, resp), expected);
    }
}

#[test]
fn free_ports_are_free() {
    let mut ports = any_free(3, &SeededRng::new(7)).unwrap();
    add_resp(&mut ports, 0, &SeededRng::new(8)).unwrap();
    assert_eq!(ports.len(), 3);
    assert_eq!(check_free(&ports), Ok(()));
}
