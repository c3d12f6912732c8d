use proptest::prelude::*;

use super::*;
use crate::golden;

fn membership() -> LogPayload {
    let member = MemberNode {
        name: "one".to_owned(),
        peer: "127.0.0.1:4801".to_owned(),
        client: "127.0.0.1:4800".to_owned(),
        http: String::new(),
    };
    let nodes = BTreeMap::from([(1, member), (2, MemberNode::default())]);
    LogPayload::Membership(Membership::new(vec![BTreeSet::from([1])], nodes).unwrap())
}

#[test]
fn payloads_survive_the_log() {
    for payload in [
        LogPayload::Blank,
        LogPayload::Normal(EntryBytes(Bytes::from_static(b"\x01anything"))),
        membership(),
    ] {
        assert_eq!(decode(encode(&payload)).unwrap(), payload);
    }
}

#[test]
fn a_membership_keeps_its_bytes() {
    golden::check("membership.bin", &encode(&membership()));
}

#[test]
fn an_entry_is_stored_as_the_bytes_that_were_proposed() {
    let entry = Bytes::from_static(b"\x01anything");
    let stored = encode(&LogPayload::Normal(EntryBytes(entry.clone())));
    assert_eq!(stored.as_ptr(), entry.as_ptr(), "the entry was copied");
}

#[test]
fn a_payload_without_members_for_its_voters_is_refused() {
    // One config with voter 9 and no members at all.
    let bytes = Bytes::from_static(&[MEMBERSHIP_V1, 1, 0, 1, 0, 9, 0, 0]);
    assert!(decode(bytes).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode(Bytes::from(bytes.clone()));
        let _ = crate::vote_record::decode(Bytes::from(bytes.clone()));
        let mut marked = vec![MEMBERSHIP_V1];
        marked.extend(bytes);
        let _ = decode(Bytes::from(marked));
    }
}
