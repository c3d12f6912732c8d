use super::*;

#[test]
fn manual_clock_moves_only_when_told() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_micros(700));
    clock.advance(Duration::from_micros(700));
    assert_eq!(clock.monotonic(), Monotonic::from_nanos(1_400_000));
    assert_eq!(clock.wall(), WallMillis::new(1));
    clock.set_wall(WallMillis::new(9));
    assert_eq!(clock.wall().get(), 9);
}

#[test]
fn distance_to_a_later_point_is_zero() {
    let early = Monotonic::from_nanos(5);
    let late = early + Duration::from_nanos(7);
    assert_eq!(
        late.saturating_duration_since(early),
        Duration::from_nanos(7)
    );
    assert_eq!(early.saturating_duration_since(late), Duration::ZERO);
    assert_eq!(early + Duration::MAX, Monotonic::from_nanos(u64::MAX));
}

#[test]
fn system_clock_does_not_go_back() {
    let clock = SystemClock::new();
    let first = clock.monotonic();
    assert!(clock.monotonic() >= first);
    assert!(clock.wall().get() > 0);
}
