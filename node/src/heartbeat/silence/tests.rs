use super::*;

/// Looks every half second, as the task does.
struct Watch {
    silence: Silence,
    heard: Option<Monotonic>,
    now: Monotonic,
    news: Vec<News>,
}

impl Watch {
    fn new() -> Self {
        Self {
            silence: Silence::default(),
            heard: None,
            now: Monotonic::from_nanos(0),
            news: Vec::new(),
        }
    }

    fn pass(&mut self, seconds: u32, is_heard: bool, is_reachable: bool) -> HeartbeatState {
        for _ in 0..2 * seconds {
            self.now = self.now + Duration::from_millis(500);
            if is_heard {
                self.heard = Some(self.now);
            }
            let news = self.silence.look(self.heard, is_reachable, self.now);
            self.news.extend(news);
        }
        self.silence.state()
    }
}

#[test]
fn a_peer_that_never_came_is_waited_for() {
    let mut watch = Watch::new();
    assert_eq!(watch.pass(60, false, false), HeartbeatState::Waiting);
    assert_eq!(watch.pass(1, true, true), HeartbeatState::Arriving);
    assert_eq!(watch.news, []);
}

#[test]
fn silence_of_a_peer_that_is_gone_is_no_blockage() {
    let mut watch = Watch::new();
    watch.pass(5, true, true);
    assert_eq!(watch.pass(60, false, false), HeartbeatState::Missing);
    assert_eq!(watch.news, []);
}

#[test]
fn silence_of_a_peer_that_tcp_reaches_is_told_once() {
    let mut watch = Watch::new();
    assert_eq!(watch.pass(4, false, true), HeartbeatState::Waiting);
    assert_eq!(watch.pass(600, false, true), HeartbeatState::Blocked);
    assert_eq!(watch.news, [News::Blocked]);
    assert_eq!(watch.pass(1, true, true), HeartbeatState::Arriving);
    assert_eq!(watch.news, [News::Blocked, News::Unblocked]);
}

#[test]
fn a_blocked_peer_that_goes_away_is_missing() {
    let mut watch = Watch::new();
    watch.pass(10, false, true);
    assert_eq!(watch.pass(3, false, false), HeartbeatState::Missing);
    assert_eq!(watch.pass(3, false, true), HeartbeatState::Missing);
    assert_eq!(watch.pass(3, false, true), HeartbeatState::Blocked);
    assert_eq!(watch.news, [News::Blocked], "twice within a minute is once");
}

#[test]
fn a_network_that_comes_and_goes_is_told_of_once_a_minute() {
    let mut watch = Watch::new();
    // Five minutes.
    for _ in 0..30 {
        watch.pass(2, true, true);
        watch.pass(8, false, true);
    }
    let blocked = watch.news.iter().filter(|news| **news == News::Blocked);
    assert!(blocked.count() <= 5, "{:?}", watch.news);
    let pairs = watch.news.chunks(2);
    for pair in pairs {
        assert_eq!(pair[0], News::Blocked);
        assert!(pair.get(1).is_none_or(|end| *end == News::Unblocked));
    }
}
