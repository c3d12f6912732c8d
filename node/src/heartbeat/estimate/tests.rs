use kelp_seams::{Clock, ManualClock, WallMillis};

use super::*;

/// Two nodes whose clocks differ, and a network with a delay in each direction.
struct Pair {
    here: ManualClock,
    there: ManualClock,
    estimate: Estimate,
    sequence: u64,
}

impl Pair {
    /// `ahead` is by how many milliseconds the peer's wall clock is ahead.
    fn new(ahead: i64) -> Self {
        let (here, there) = (ManualClock::new(), ManualClock::new());
        // The monotonic clocks have nothing in common either.
        there.advance(Duration::from_secs(77));
        here.set_wall(WallMillis::new(1_000_000));
        there.set_wall(WallMillis::new(1_000_000_u64.saturating_add_signed(ahead)));
        Self {
            here,
            there,
            estimate: Estimate::default(),
            sequence: 0,
        }
    }

    fn pass(&self, millis: u64) {
        for clock in [&self.here, &self.there] {
            clock.advance(Duration::from_millis(millis));
        }
    }

    fn now(&self) -> Moment {
        Moment {
            monotonic: self.here.monotonic(),
            wall: self.here.wall(),
        }
    }

    /// A heartbeat that takes `out`, is held for `held`, and whose echo takes `back`.
    fn exchange(&mut self, out: u64, held: u64, back: u64) {
        let sent = stamp(&self.here);
        self.sequence += 1;
        self.pass(out);
        let received = stamp(&self.there);
        self.pass(held);
        let answered = stamp(&self.there);
        self.pass(back);
        let echo = HeartbeatEcho {
            boot: 1,
            sequence: self.sequence,
            sent,
            received_wall_millis: received.wall_millis,
            held_nanos: answered.monotonic_nanos - received.monotonic_nanos,
            received: 1,
            window: 1,
        };
        let now = self.now();
        self.estimate.add(&echo, answered, now);
        // Echoed again before a newer one: it tells nothing new.
        self.pass(1);
        let now = self.now();
        self.estimate.add(&echo, stamp(&self.there), now);
    }

    fn measured(&self) -> (Option<Duration>, Option<i64>) {
        let now = self.here.monotonic();
        (
            self.estimate.round_trip(now),
            self.estimate.offset_millis(now),
        )
    }
}

fn stamp(clock: &ManualClock) -> HeartbeatStamp {
    HeartbeatStamp {
        monotonic_nanos: clock.monotonic().as_nanos(),
        wall_millis: clock.wall().get(),
    }
}

#[test]
fn round_trip_is_without_the_time_that_it_was_held() {
    let mut pair = Pair::new(0);
    assert_eq!(pair.measured(), (None, None));
    pair.exchange(3, 60, 5);
    assert_eq!(pair.measured().0, Some(Duration::from_millis(8)));
}

#[test]
fn offset_is_found_in_both_directions_when_the_ways_are_alike() {
    for ahead in [-5_000, -1, 0, 250] {
        let mut pair = Pair::new(ahead);
        pair.exchange(4, 30, 4);
        assert_eq!(
            pair.measured(),
            (Some(Duration::from_millis(8)), Some(ahead))
        );
    }
}

#[test]
fn the_quickest_exchange_of_the_last_eight_tells_the_offset() {
    let mut pair = Pair::new(100);
    pair.exchange(90, 0, 10);
    assert_eq!(pair.measured().1, Some(140));
    pair.exchange(5, 0, 5);
    assert_eq!(pair.measured().1, Some(100));
    for _ in 0..7 {
        pair.exchange(20, 0, 10);
    }
    assert_eq!(pair.measured().1, Some(100));
    pair.exchange(20, 0, 10);
    assert_eq!(pair.measured().1, Some(105));
}

#[test]
fn a_wall_clock_that_is_set_does_not_show_in_the_round_trip() {
    let mut pair = Pair::new(0);
    pair.exchange(2, 10, 2);
    pair.here.set_wall(WallMillis::new(5));
    pair.exchange(2, 10, 2);
    assert_eq!(pair.measured().0, Some(Duration::from_millis(4)));
}

#[test]
fn the_round_trip_is_smoothed() {
    let mut pair = Pair::new(0);
    pair.exchange(4, 10, 4);
    pair.exchange(44, 10, 44);
    assert_eq!(pair.measured().0, Some(Duration::from_millis(18)));
}

#[test]
fn values_without_a_new_echo_go_out_of_date() {
    let mut pair = Pair::new(0);
    pair.exchange(1, 1, 1);
    pair.pass(9_998);
    assert!(pair.measured().0.is_some());
    pair.pass(1);
    assert_eq!(pair.measured(), (None, None));
}

#[test]
fn nonsense_is_left_out() {
    let mut pair = Pair::new(0);
    let echo = HeartbeatEcho {
        boot: 1,
        sequence: 9,
        sent: HeartbeatStamp {
            monotonic_nanos: u64::MAX,
            wall_millis: u64::MAX,
        },
        received_wall_millis: 0,
        held_nanos: u64::MAX,
        received: 0,
        window: 0,
    };
    let now = pair.now();
    pair.estimate.add(&echo, HeartbeatStamp::default(), now);
    assert_eq!(pair.measured(), (None, None));
    pair.pass(61_000);
    let old = HeartbeatEcho {
        sent: HeartbeatStamp::default(),
        held_nanos: 0,
        ..echo
    };
    let now = pair.now();
    pair.estimate.add(&old, HeartbeatStamp::default(), now);
    assert_eq!(pair.measured(), (None, None));
}

proptest::proptest! {
    #[test]
    fn no_stamps_make_it_panic(
        stamps: [u64; 5],
        walls: [u64; 2],
        now: [u64; 2],
    ) {
        let [monotonic_nanos, wall_millis, received_wall_millis, held_nanos, sequence] = stamps;
        let echo = HeartbeatEcho {
            boot: 1,
            sequence,
            sent: HeartbeatStamp { monotonic_nanos, wall_millis },
            received_wall_millis,
            held_nanos,
            received: 0,
            window: 0,
        };
        let sent = HeartbeatStamp { monotonic_nanos: walls[0], wall_millis: walls[1] };
        let now = Moment {
            monotonic: Monotonic::from_nanos(now[0]),
            wall: WallMillis::new(now[1]),
        };
        Estimate::default().add(&echo, sent, now);
    }
}
