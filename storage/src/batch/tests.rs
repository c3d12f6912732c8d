use bytes::Bytes;

use super::{IndexedBatch, WriteBatch};

#[test]
fn a_batch_counts_every_operation_and_its_bytes() {
    let mut batch = WriteBatch::new();
    assert!(batch.is_empty());
    batch.put("key", "value");
    batch.put("key", "again");
    batch.delete("longer key");
    batch.put("", "");
    assert_eq!(
        (batch.len(), batch.bytes(), batch.key_bytes_longest()),
        (4, 26, 10)
    );
    assert!(!batch.is_empty());
}

#[test]
fn an_indexed_batch_answers_with_the_latest_operation() {
    let mut batch = IndexedBatch::new();
    assert_eq!(batch.get(b"a"), None);
    batch.put("a", "1");
    assert_eq!(batch.get(b"a"), Some(Some(Bytes::from("1"))));
    batch.put("a", "2");
    assert_eq!(batch.get(b"a"), Some(Some(Bytes::from("2"))));
    batch.delete("a");
    assert_eq!(batch.get(b"a"), Some(None));
    batch.put("a", "");
    assert_eq!(batch.get(b"a"), Some(Some(Bytes::new())));
    assert_eq!(batch.get(b"b"), None);
}

#[test]
fn a_lookup_built_late_knows_what_came_before() {
    let mut batch = IndexedBatch::new();
    batch.put("a", "1");
    batch.put("b", "1");
    batch.put("a", "2");
    batch.delete("b");
    assert_eq!(batch.get(b"a"), Some(Some(Bytes::from("2"))));
    assert_eq!(batch.get(b"b"), Some(None));
    assert_eq!(batch.clone().get(b"b"), Some(None));
    assert_eq!(batch.get(b"c"), None);
    batch.put("c", "3");
    assert_eq!(batch.get(b"c"), Some(Some(Bytes::from("3"))));
}

#[test]
fn an_indexed_batch_keeps_every_operation_in_order() {
    let mut indexed = IndexedBatch::new();
    let mut plain = WriteBatch::new();
    indexed.put("a", "1");
    plain.put("a", "1");
    indexed.delete("a");
    plain.delete("a");
    indexed.put("b", "2");
    plain.put("b", "2");
    assert_eq!(
        (indexed.len(), indexed.bytes()),
        (plain.len(), plain.bytes())
    );
    assert_eq!(
        indexed.into_batch().into_operations(),
        plain.into_operations()
    );
}
