//! The cases of `openraft::testing::log::Suite`, each on a log and a state of its own.

use std::sync::Arc;

use kelp_storage::MemFs;
use openraft::testing::log::{StoreBuilder, Suite};

use super::Engine;
use super::filled::Filled;
use crate::log_store::LogStore;
use crate::type_config::TypeConfig;

/// Opens engines that are stepped together with the first.
struct Engines(Arc<Engine>);

impl StoreBuilder<TypeConfig, LogStore, Filled, ()> for Engines {
    async fn build(&self) -> Result<((), LogStore, Filled), openraft::StorageError<TypeConfig>> {
        let executor = Arc::clone(&self.0.executor);
        let clock = Arc::clone(&self.0.clock);
        let engine = Arc::new(Engine::open_on(&MemFs::new(), executor, clock));
        Ok(((), engine.store(), Filled::new(&engine)))
    }
}

type Cases = Suite<TypeConfig, LogStore, Filled, Engines, ()>;

#[tokio::test]
async fn transfer_snapshot() {
    let engine = Arc::new(Engine::open(&MemFs::new()));
    let builder = Engines(Arc::clone(&engine));
    let case = Cases::transfer_snapshot(&builder);
    engine.drive(case).await.unwrap();
}

macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                let engine = Arc::new(Engine::open(&MemFs::new()));
                let case = Cases::$case(engine.store(), Filled::new(&engine));
                engine.drive(case).await.unwrap();
            }
        )*
    };
}

cases!(
    last_membership_in_log_initial,
    last_membership_in_log,
    last_membership_in_log_multi_step,
    get_membership_initial,
    get_membership_from_log_and_empty_sm,
    get_membership_from_empty_log_and_sm,
    get_membership_from_log_le_sm_last_applied,
    get_membership_from_log_gt_sm_last_applied_1,
    get_membership_from_log_gt_sm_last_applied_2,
    get_initial_state_without_init,
    get_initial_state_membership_from_empty_log_and_sm,
    get_initial_state_membership_from_sm_inlog_is_smaller,
    get_initial_state_membership_from_log_insm_is_smaller,
    get_initial_state_with_state,
    get_initial_state_last_log_gt_sm,
    get_initial_state_last_log_lt_sm,
    get_initial_state_inverted_log_order,
    get_initial_state_conflict_at_same_index,
    get_initial_state_log_ids,
    get_initial_state_re_apply_committed,
    save_vote,
    get_log_entries,
    limited_get_log_entries,
    leader_bounded_stream,
    entries_stream,
    try_get_log_entry,
    log_reader_reads_new_entries,
    initial_logs,
    get_log_state,
    get_log_id,
    last_id_in_log,
    purge_logs_upto_0,
    purge_logs_upto_5,
    purge_logs_upto_20,
    delete_logs_after_11,
    delete_logs_after_5,
    delete_logs_after_0,
    delete_logs_after_none,
    append_to_log,
    last_applied_state,
    snapshot_meta,
    snapshot_meta_optional,
    apply_single,
    apply_multiple,
);
