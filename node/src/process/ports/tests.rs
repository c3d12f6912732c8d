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
    assert_eq!(from_base(65_530, 3), Err(PortError::BeyondLast(65_530)));
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
    }];
    assert_eq!(check_free(&ports), Err(PortError::Taken(taken)));
}

#[test]
fn free_ports_are_free() {
    let ports = any_free(3, &SeededRng::new(7)).unwrap();
    assert_eq!(ports.len(), 3);
    assert_eq!(check_free(&ports), Ok(()));
}
