use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn identities_survive_encoding(database: [u8; 16], owner in prop::collection::vec(any::<u8>(), 0..200)) {
        let owner = (!owner.is_empty()).then(|| Bytes::from(owner));
        let identity = Identity { database: DatabaseId(database), owner };
        prop_assert_eq!(Identity::decode(&identity.encode()), Ok(identity));
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Identity::decode(&bytes);
        // With a checksum that holds, the fields are reached.
        bytes.splice(0..0, MAGIC.to_le_bytes());
        let check = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        let _ = Identity::decode(&bytes);
    }
}
