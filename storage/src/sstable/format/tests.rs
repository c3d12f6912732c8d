use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SALT: Salt = Salt::from_number(0xDEAD_BEEF);
const FILE_BYTES: u64 = 1_000;

fn footer() -> Footer {
    Footer {
        properties: Handle {
            offset: 800,
            length: 131,
        },
        index: Handle {
            offset: 700,
            length: 95,
        },
        filter: Some(Handle {
            offset: 500,
            length: 68,
        }),
        salt: SALT,
        two_level_index: true,
    }
}

/// A changed footer with a right check.
fn with_check(mut bytes: [u8; FOOTER_BYTES]) -> [u8; FOOTER_BYTES] {
    let check = crc32fast::hash(&bytes[..FOOTER_CHECKED_BYTES]);
    bytes[52..56].copy_from_slice(&check.to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn a_block_gives_its_payload_back(
        payload in prop_oneof![vec(any::<u8>(), 0..200), vec(0..2_u8, 0..2_000)],
        offset: u64,
        compress: bool,
    ) {
        let compression = if compress { Compression::Lz4 } else { Compression::None };
        let mut stored = vec![7];
        let handle = append_block(&mut stored, &payload, offset, SALT, compression);
        let stored = stored.split_off(1);
        prop_assert_eq!(handle.offset, offset);
        prop_assert_eq!(handle.stored_bytes(), stored.len());
        prop_assert!(stored.len() <= payload.len() + BLOCK_TRAILER_BYTES);
        prop_assert_eq!(open_block(stored.clone(), offset, SALT).unwrap(), payload);
        prop_assert!(open_block(stored.clone(), offset ^ 1, SALT).is_err());
        prop_assert!(open_block(stored, offset, Salt::from_number(1)).is_err());
    }

    #[test]
    fn a_block_of_arbitrary_bytes_never_panics(
        mut bytes in vec(any::<u8>(), 0..100),
        kind in 0..3_u8,
    ) {
        let _ = open_block(bytes.clone(), 0, SALT);
        bytes.push(kind);
        let check = SALT.apply(crc32fast::hash(&bytes), 0);
        bytes.extend_from_slice(&check.to_le_bytes());
        let opened = open_block(bytes, 0, SALT);
        prop_assert_eq!(opened.is_ok() || kind != RAW, true);
    }

    #[test]
    fn a_handle_of_arbitrary_bytes_never_panics(bytes in vec(any::<u8>(), 0..24)) {
        if let Some(handle) = Handle::decode(&bytes) {
            let _ = (handle.end(), handle.stored_bytes());
        }
    }

    #[test]
    fn a_footer_of_arbitrary_bytes_never_panics(
        changes in vec((0..FOOTER_CHECKED_BYTES, any::<u8>()), 0..20),
        file_bytes: u64,
    ) {
        let mut bytes = footer().encode();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        for file_bytes in [file_bytes, FILE_BYTES] {
            let _ = Footer::decode(&with_check(bytes), file_bytes);
        }
    }
}

#[test]
fn a_footer_gives_its_fields_back() {
    let footers = [
        footer(),
        Footer {
            filter: None,
            two_level_index: false,
            ..footer()
        },
    ];
    for footer in footers {
        assert_eq!(Footer::decode(&footer.encode(), FILE_BYTES), Ok(footer));
        assert!(Footer::decode(&footer.encode(), FILE_BYTES + 1).is_err());
    }
}

#[test]
fn a_footer_of_the_future_is_refused() {
    let mut bytes = footer().encode();
    bytes[40] = 2;
    let decoded = Footer::decode(&with_check(bytes), FILE_BYTES);
    assert_eq!(decoded, Err(FooterFault::Newer(2)));
    for (at, value) in [(42, 2), (43, 2)] {
        let mut bytes = footer().encode();
        bytes[at] = value;
        let decoded = Footer::decode(&with_check(bytes), FILE_BYTES);
        assert!(matches!(decoded, Err(FooterFault::Damaged(_))));
    }
}

#[test]
fn every_flipped_bit_of_a_footer_is_found() {
    let bytes = footer().encode();
    for bit in 0..FOOTER_BYTES * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Footer::decode(&damaged, FILE_BYTES).is_err(), "{bit}");
    }
}
