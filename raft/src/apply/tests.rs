//! Entries applied to a real keyspace, compared with a plain model and with each other.

mod against_model;
mod commands;
mod deduplication;
mod determinism;
mod entries;
mod operations;
mod plain_model;
mod replica;

use bytes::Bytes;

use super::*;
use crate::model::*;
use replica::{Replica, position};

fn id(node: u16, boot: u64, batch: u64) -> SubBatchId {
    SubBatchId {
        node: NodeId::new(node),
        boot: Boot::new(boot),
        batch: BatchNumber::new(batch),
    }
}

fn put(key: &[u8], value: &[u8]) -> Command {
    let [key, value] = [key, value].map(Bytes::copy_from_slice);
    Operation::Put { key, value }.command(0)
}

fn delete(key: &[u8]) -> Command {
    Operation::Delete {
        key: Bytes::copy_from_slice(key),
    }
    .command(0)
}

fn sub_batch(id: SubBatchId, floor: u64, commands: &[Command]) -> SubBatch {
    let mut builder = SubBatchBuilder::new();
    for command in commands {
        builder.append(command).unwrap();
    }
    builder.take(id, BatchNumber::new(floor))
}

fn entry(stamp: u64, sub_batches: Vec<SubBatch>) -> Bytes {
    Entry {
        stamp: StampMillis::new(stamp),
        sub_batches,
    }
    .encode()
}

fn done(index: u64, position: u64) -> CommandReply {
    CommandReply::done(Revision::new((index << 16) + position))
}

fn status(status: ReplyStatus) -> CommandReply {
    CommandReply::of(status)
}
