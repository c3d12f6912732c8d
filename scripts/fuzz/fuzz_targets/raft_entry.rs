//! Entries of the log, with the sub-batches, commands and operations in them.

#![no_main]

use bytes::{Bytes, BytesMut};
use kelp_raft::{Command, Entry, Operation, SubBatch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let input = Bytes::copy_from_slice(bytes);
    if let Ok(entry) = kelp_fuzz::bounded(bytes, || Entry::decode(&input)) {
        assert_eq!(entry.encode(), input);
        entry.sub_batches.iter().for_each(check_sub_batch);
    }
    if let Ok(sub_batch) = kelp_fuzz::bounded(bytes, || SubBatch::decode(&input)) {
        assert_eq!(sub_batch.encode(), input);
        check_sub_batch(&sub_batch);
    }
    if let Ok(command) = kelp_fuzz::bounded(bytes, || Command::decode(&input)) {
        check_command(&command, bytes);
    }
});

fn check_sub_batch(sub_batch: &SubBatch) {
    let sound = sub_batch.check_commands().is_ok();
    let mut again = BytesMut::new();
    for command in sub_batch.commands().map_while(Result::ok) {
        let command = Command::new(command.head, Bytes::copy_from_slice(command.body));
        command.encode_into(&mut again);
    }
    if sound {
        assert_eq!(again, sub_batch.commands);
    }
}

fn check_command(command: &Command, bytes: &[u8]) {
    let mut again = BytesMut::new();
    command.encode_into(&mut again);
    assert_eq!(again, bytes);
    if let Ok(operation) = Operation::decode(command) {
        let body = operation.borrow();
        assert_eq!(body.opcode(), command.opcode);
        assert_eq!(body.body_bytes(), command.body.len());
    }
}
