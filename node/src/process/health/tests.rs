use super::*;

#[test]
fn a_listener_on_every_address_is_reached_by_loopback() {
    for (listener, expected) in [
        ("0.0.0.0:4802", "127.0.0.1:4802"),
        ("[::]:4802", "[::1]:4802"),
        ("10.0.0.1:4802", "10.0.0.1:4802"),
    ] {
        let listener = listener.parse().unwrap();
        assert_eq!(reachable(listener).to_string(), expected);
    }
}

#[test]
fn only_the_two_answers_of_a_node_count() {
    let ready = parse("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n").unwrap();
    assert!(ready.is_ready);
    assert_eq!(ready.text, "ok\n");
    let draining = "HTTP/1.1 503 Service Unavailable\r\n\r\n[-]leader none\nnot ready\n";
    assert!(!parse(draining).unwrap().is_ready);
    assert_eq!(parse("HTTP/1.1 404 Not Found\r\n\r\n"), None);
    assert_eq!(parse("-ERR unknown command"), None);
}
