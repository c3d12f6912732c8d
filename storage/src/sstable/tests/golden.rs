//! Tables of version 1: what is written today is byte for byte what was written then, and what was
//! written then is read for ever.

use super::*;
use crate::golden;

/// Compressed, with a filter and one index; raw, without a filter and with partitions.
fn tables() -> [(u64, SstableOptions); 2] {
    let plain = SstableOptions {
        compression: Compression::None,
        filter_bits_per_key: 0,
        index_bytes_max: 150,
        ..small_options()
    };
    [(3, small_options()), (4, plain)]
}

#[test]
fn the_bytes_of_version_1_are_written() {
    for (number, options) in tables() {
        let disk = disk();
        write(&disk, number, options, &small()).unwrap();
        let mut bytes = Vec::new();
        disk.corrupt(&path(number), |content| bytes.clone_from(content))
            .unwrap();
        golden::check(&FileNumber::new(number).sstable_name(), &bytes);
    }
}

#[test]
fn a_table_of_version_1_is_read() {
    for (number, _) in tables() {
        let disk = disk();
        let bytes = golden::load(&FileNumber::new(number).sstable_name());
        disk.create(&path(number))
            .unwrap()
            .write_at(&bytes, 0)
            .unwrap();
        let file = SstableFile {
            number: FileNumber::new(number),
            bytes: bytes.len() as u64,
            birth: birth(number),
        };
        let cache = Arc::new(BlockCache::new(1 << 20));
        let reader = SstableReader::open(&disk, directory(), file, cache).unwrap();
        assert_eq!(all(&Arc::new(reader), 100).unwrap(), small());
    }
}
