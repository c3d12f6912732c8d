use proptest::prelude::*;

use super::*;

fn salt(seed: u8) -> Salt {
    Salt::new(
        DatabaseId::from_bytes([seed; 16]),
        FileNumber::new(u64::from(seed)),
    )
}

proptest! {
    #[test]
    fn file_headers_survive_encoding(
        number: u64,
        database: [u8; 16],
        before: u64,
        length: u64,
        last_sequence in 0..1_u64 << 62,
    ) {
        let predecessor = (before != 0)
            .then_some(Predecessor { number: FileNumber::new(before), length, last_sequence });
        let header = FileHeader {
            number: FileNumber::new(number),
            database: DatabaseId::from_bytes(database),
            predecessor,
        };
        prop_assert_eq!(FileHeader::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn frame_headers_hold_at_their_place_only(
        body_bytes: u32,
        record_count: u32,
        first_sequence: u64,
        synced_upto: u64,
        seals: bool,
        predecessor_durable: bool,
        offset in 0..1_u64 << 40,
        elsewhere in 0..1_u64 << 40,
    ) {
        let kind = if seals { FrameKind::Seal } else { FrameKind::Data };
        let header = FrameHeader {
            kind,
            body_bytes,
            record_count,
            first_sequence,
            synced_upto,
            predecessor_durable,
        };
        let bytes = header.encode(salt(1), offset);
        prop_assert!(FrameHeader::looks_like(&bytes));
        prop_assert_eq!(FrameHeader::decode(&bytes, salt(1), offset), Some(header));
        prop_assert_eq!(FrameHeader::decode(&bytes, salt(2), offset), None);
        if elsewhere != offset {
            prop_assert_eq!(FrameHeader::decode(&bytes, salt(1), elsewhere), None);
        }
    }

    #[test]
    fn records_hold_at_their_place_only(
        first in prop::collection::vec(any::<u8>(), 0..50),
        second in prop::collection::vec(any::<u8>(), 0..50),
        offset in 0..1_u64 << 40,
    ) {
        let parts = [first.as_slice(), second.as_slice()];
        let mut body = vec![0; 16];
        push_record(&mut body, parts, record_check(parts), salt(3), offset + 16);
        prop_assert_eq!(body.len() % ALIGNMENT, 0);
        let found = record_at(&body, 16, salt(3), offset).map(|record| record.payload.to_vec());
        prop_assert_eq!(found, Some(parts.concat()));
        prop_assert_eq!(record_at(&body, 16, salt(3), offset + 8), None);
        prop_assert_eq!(record_at(&body, 16, salt(4), offset), None);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), position in 0..220_usize) {
        let _ = FrameHeader::decode(&bytes, salt(1), 0);
        let _ = record_at(&bytes, position, salt(1), 0);
        let mut header = [0; FILE_HEADER_BYTES];
        let count = bytes.len().min(60);
        header[..count].copy_from_slice(&bytes[..count]);
        header[..4].copy_from_slice(&FILE_MAGIC.to_le_bytes());
        let check = crc32fast::hash(&header[..60]);
        header[60..].copy_from_slice(&check.to_le_bytes());
        let _ = FileHeader::decode(&header);
    }
}
