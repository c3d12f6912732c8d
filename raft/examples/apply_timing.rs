//! What one command costs on its way from the socket's bytes to the memtable, without disk and
//! network: building the entry, applying it, writing the batch.
//!
//! `cargo run --release -p kelp-raft --example apply_timing`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kelp_raft::{
    BatchNumber, Boot, CommandHead, CommandOpcode, EntryApplier, EntryBuilder, LogIndex, NodeId,
    OperationRef, StampMillis, SubBatchBuilder, SubBatchId,
};
use kelp_seams::{Clock, Rng, SeededRng, SteppedExecutor, SystemClock};
use kelp_storage::{
    Database, DatabaseOptions, EntryTerm, IndexedBatch, Keyspace, LogPosition, MemFs, Seams,
};

/// Distinct keys; the memtable holds every version of each.
const KEY_COUNT: u64 = 1_000_000;

struct Load {
    commands_per_entry: u32,
    value_bytes: usize,
    /// Every how many commands one is a delete, which reads; 0 for none.
    delete_every: u32,
    entry_count: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let loads = [
        (1, 100, 0, 50_000),
        (100, 100, 0, 4_000),
        (1_000, 100, 0, 400),
        (1_000, 100, 2, 400),
    ];
    for (commands_per_entry, value_bytes, delete_every, entry_count) in loads {
        measure(&Load {
            commands_per_entry,
            value_bytes,
            delete_every,
            entry_count,
        })?;
    }
    Ok(())
}

/// Applies the load to an empty state and prints what each part took per command.
#[expect(
    clippy::print_stdout,
    reason = "the numbers are the product of this program"
)]
fn measure(load: &Load) -> Result<(), Box<dyn Error>> {
    let clock = Arc::new(SystemClock::new());
    let keyspace = keyspace(clock.clone())?;
    let mut entries = EntryApplier::load(&keyspace.view())?;
    let rng = SeededRng::new(1);
    let [mut build, mut apply, mut write] = [Duration::ZERO; 3];
    for number in 0..u64::from(load.entry_count) {
        let started = clock.monotonic();
        let payload = payload(load, number, &rng)?;
        let build_end = clock.monotonic();
        let mut batch = IndexedBatch::new();
        let position = LogPosition {
            index: LogIndex::new(number),
            term: EntryTerm { term: 1, leader: 1 },
        };
        entries.apply(position, &payload, &keyspace.view(), &mut batch)?;
        let apply_end = clock.monotonic();
        keyspace.write(batch.into_batch())?;
        let write_end = clock.monotonic();
        build += build_end.saturating_duration_since(started);
        apply += apply_end.saturating_duration_since(build_end);
        write += write_end.saturating_duration_since(apply_end);
    }
    let commands = u128::from(load.entry_count) * u128::from(load.commands_per_entry);
    let [build, apply, write] = [build, apply, write].map(|part| part.as_nanos() / commands);
    println!(
        "{} per entry, {} B values, delete every {}: build {build}, apply {apply}, write {write} ns",
        load.commands_per_entry, load.value_bytes, load.delete_every
    );
    Ok(())
}

fn keyspace(clock: Arc<SystemClock>) -> Result<Keyspace, Box<dyn Error>> {
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(SteppedExecutor::new(clock)),
    };
    let database = Database::open(Path::new("/data"), DatabaseOptions::default(), seams)?;
    Ok(database.keyspace("state")?)
}

/// An entry with one sub-batch, as a leader without followers' commands proposes it.
fn payload(load: &Load, number: u64, rng: &SeededRng) -> Result<bytes::Bytes, Box<dyn Error>> {
    let value = vec![7; load.value_bytes];
    let mut builder = SubBatchBuilder::new();
    for command in 0..load.commands_per_entry {
        let key = (rng.next_u64() % KEY_COUNT).to_be_bytes();
        let delete = load.delete_every != 0 && command % load.delete_every == 0;
        let operation = if delete {
            OperationRef::Delete { key: &key }
        } else {
            OperationRef::Put {
                key: &key,
                value: &value,
            }
        };
        builder.append_operation(CommandHead::new(CommandOpcode::PUT, 0), &operation)?;
    }
    let id = SubBatchId {
        node: NodeId::new(1),
        boot: Boot::new(1),
        batch: BatchNumber::new(number + 1),
    };
    let mut entry = EntryBuilder::new();
    entry.push(builder.take(id, BatchNumber::new(number)))?;
    Ok(entry.finish(StampMillis::new(number)))
}
