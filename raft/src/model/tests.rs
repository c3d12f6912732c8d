//! Golden bytes and properties of the model's formats.

mod builders;
mod formats;
mod properties;

use bytes::Bytes;

use super::*;

fn id(node: u16, boot: u64, batch: u64) -> SubBatchId {
    SubBatchId {
        node: NodeId::new(node),
        boot: Boot::new(boot),
        batch: BatchNumber::new(batch),
    }
}

fn put(key: &'static [u8], value: &'static [u8]) -> Operation {
    Operation::Put {
        key: Bytes::from_static(key),
        value: Bytes::from_static(value),
    }
}

fn sub_batch(id: SubBatchId, commands: &[Command]) -> SubBatch {
    let mut builder = SubBatchBuilder::new();
    for command in commands {
        builder.append(command).unwrap();
    }
    builder.take(id, BatchNumber::FIRST)
}
