//! When secrets count, and what they seal.

use kelp_seams::ManualClock;

use super::*;

fn held(slot: &Arc<SecretSlot>, seed: u8, clock: &Arc<ManualClock>) -> HeldSecret {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    HeldSecret::new(slot, LinkSecret::of_seed(seed), &clock)
}

/// The last nanosecond of the afterlife is still to come.
const ALMOST: Duration = SECRET_AFTERLIFE.saturating_sub(Duration::from_nanos(1));

fn id(seed: u8) -> HeartbeatKeyId {
    LinkSecret::of_seed(seed).id()
}

#[test]
fn the_mac_is_hmac_sha_256_cut_to_its_first_half() {
    // RFC 4231, test case 1, whose key of 20 bytes HMAC pads with zeros.
    let mut exported = [0; KEY_BYTES + ID_BYTES];
    exported[..20].copy_from_slice(&[0x0b; 20]);
    let mac = LinkSecret::of(&exported).sign(b"Hi There");
    let expected = [
        0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1,
        0x2b,
    ];
    assert_eq!(mac, expected);
}

#[test]
fn one_changed_bit_of_message_mac_or_key_is_found() {
    let secret = LinkSecret::of_seed(1);
    let message = b"alive".to_vec();
    let mac = secret.sign(&message);
    assert!(secret.verify(&message, &mac));
    assert!(!LinkSecret::of_seed(2).verify(&message, &mac));
    for bit in 0..message.len() * 8 {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!secret.verify(&changed, &mac), "bit {bit} of the message");
    }
    for bit in 0..mac.len() * 8 {
        let mut changed = mac;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!secret.verify(&message, &changed), "bit {bit} of the mac");
    }
}

#[test]
fn the_secret_before_the_newest_counts_for_ten_more_seconds() {
    let (slot, clock) = (
        Arc::new(SecretSlot::default()),
        Arc::new(ManualClock::new()),
    );
    let _first = held(&slot, 1, &clock);
    let _second = held(&slot, 2, &clock);
    let newest = slot.newest(clock.monotonic()).unwrap();
    assert_eq!(newest.id(), id(2));
    clock.advance(ALMOST);
    assert!(slot.find(id(1), clock.monotonic()).is_some());
    clock.advance(Duration::from_nanos(1));
    assert!(slot.find(id(1), clock.monotonic()).is_none());
    assert!(slot.find(id(2), clock.monotonic()).is_some());
}

#[test]
fn the_secret_of_an_ended_connection_counts_for_ten_more_seconds() {
    let (slot, clock) = (
        Arc::new(SecretSlot::default()),
        Arc::new(ManualClock::new()),
    );
    let only = held(&slot, 1, &clock);
    assert!(slot.is_open());
    drop(only);
    assert!(!slot.is_open());
    clock.advance(ALMOST);
    assert!(slot.newest(clock.monotonic()).is_some());
    clock.advance(Duration::from_nanos(1));
    assert!(slot.newest(clock.monotonic()).is_none());
    assert!(slot.find(id(1), clock.monotonic()).is_none());
}

#[test]
fn no_more_than_two_secrets_are_kept() {
    let (slot, clock) = (
        Arc::new(SecretSlot::default()),
        Arc::new(ManualClock::new()),
    );
    let _all: Vec<_> = (1..=9).map(|seed| held(&slot, seed, &clock)).collect();
    let valid = |seed| slot.find(id(seed), clock.monotonic()).is_some();
    let valid: Vec<u8> = (1..=9).filter(|seed| valid(*seed)).collect();
    assert_eq!(valid, [8, 9]);
}

#[test]
fn a_secret_is_not_printed() {
    let text = format!("{:?}", LinkSecret::of_seed(0xAB));
    assert!(!text.contains("hmac"), "{text}");
}
