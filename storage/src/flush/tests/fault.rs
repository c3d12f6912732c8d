//! Every operation on tables and manifest fails in turn: nothing is lost, the flush is done in the
//! end, and no file stays behind.

use super::*;

const EIO: i32 = 5;

/// What belongs to flushing; a fault of the log ends writing for good and is tested there.
const NAMES: [&str; 4] = ["*.sst", "MANIFEST-*", "CURRENT*", "data"];

fn fill(bench: &Bench) {
    for number in 0..40 {
        bench.put(&format!("key {:02}", number % 25), vec![number; 200]);
    }
    bench.delete("key 07");
}

fn expected() -> Vec<(Bytes, Bytes)> {
    let bench = Bench::new();
    fill(&bench);
    scan(&bench.keyspace.view(), Direction::Forward).unwrap()
}

/// All but removing: a file that cannot be removed stays until the next open.
const OPERATIONS: [FaultOperation; 7] = [
    FaultOperation::Create,
    FaultOperation::Open,
    FaultOperation::Read,
    FaultOperation::Write,
    FaultOperation::Sync,
    FaultOperation::Rename,
    FaultOperation::Resize,
];

/// Flushes with `fault` in the way; answers whether it struck.
fn flush_with_fault(fault: &FaultRule) -> bool {
    let expected = expected();
    let bench = Bench::new();
    bench.put("before", "flushed");
    bench.flush();
    bench.delete("before");
    fill(&bench);
    bench.faults.add(fault.clone());
    bench.keyspace.flush();
    for _ in 0..4 {
        bench.run();
        // The fault may strike the scan, which says so then.
        if let Ok(found) = scan(&bench.keyspace.view(), Direction::Forward) {
            assert_eq!(found, expected);
        }
        bench.stage.clock.advance(Duration::from_secs(20));
    }
    bench.faults.clear();
    for _ in 0..4 {
        bench.run();
        bench.stage.clock.advance(Duration::from_secs(20));
    }
    let metrics = bench.database.metrics();
    let struck = metrics.flush_failures + metrics.compaction_failures > 0;
    assert_eq!(metrics.memtables, 0, "the flush is done: {fault:?}");
    check_files(&bench);
    for _ in 0..2 {
        let killed = Bench::on(bench.disk.kill_clone());
        let view = killed.keyspace.view();
        assert_eq!(
            scan(&view, Direction::Reverse).unwrap().len(),
            expected.len()
        );
        assert_eq!(scan(&view, Direction::Forward).unwrap(), expected);
        check_files(&killed);
    }
    struck
}

/// Every table on the disk is one of the keyspace.
fn check_files(bench: &Bench) {
    bench.run();
    let known = bench.database.metrics().level_tables.iter().sum::<u64>();
    assert_eq!(bench.tables().len(), usize::try_from(known).unwrap());
}

#[test]
fn a_fault_of_any_operation_is_overcome_and_leaves_no_file_behind() {
    let faults = [
        Fault::Errno(ENOSPC),
        Fault::Errno(EIO),
        Fault::LostSync { errno: EIO },
    ];
    let mut struck = 0;
    for fault in faults {
        for (name, operation) in NAMES
            .iter()
            .flat_map(|name| OPERATIONS.map(|it| (name, it)))
        {
            for skip in 0..20 {
                let rule = FaultRule {
                    name: Some((*name).to_owned()),
                    ..FaultRule::once(Some(operation), skip, fault)
                };
                if !flush_with_fault(&rule) {
                    break;
                }
                struck += 1;
            }
        }
    }
    assert!(struck > 50, "only {struck} faults struck");
}

#[test]
fn a_disk_that_fails_for_a_while_is_overcome() {
    for name in NAMES {
        for skip in 0..6 {
            let fault = Fault::ShortWrite {
                bytes: 100,
                errno: ENOSPC,
            };
            flush_with_fault(&FaultRule {
                name: Some(name.to_owned()),
                count: 5,
                ..FaultRule::once(Some(FaultOperation::Write), skip, fault)
            });
        }
    }
}

/// The files of a kind that are on the disk.
fn count(bench: &Bench, kind: fn(&str) -> Option<FileNumber>) -> usize {
    let names = bench.disk.list(directory()).unwrap();
    names.iter().filter(|name| kind(name).is_some()).count()
}

#[test]
fn no_files_pile_up_while_the_manifest_cannot_be_written() {
    for operation in [
        FaultOperation::Write,
        FaultOperation::Sync,
        FaultOperation::Create,
    ] {
        let bench = Bench::new();
        fill(&bench);
        bench.flush();
        let tables_before = bench.tables().len();
        fill(&bench);
        // The first edit fails in the manifest that is there, later ones cannot begin another.
        for (operation, count) in [(FaultOperation::Sync, 1), (operation, u64::MAX)] {
            bench.faults.add(FaultRule {
                name: Some("MANIFEST-*".to_owned()),
                count,
                ..FaultRule::once(Some(operation), 0, Fault::Errno(ENOSPC))
            });
        }
        bench.keyspace.flush();
        bench.run();
        let once = bench.tables().len();
        assert!(once > tables_before, "a crash may need them");
        for _ in 0..20 {
            bench.stage.clock.advance(Duration::from_secs(20));
            bench.run();
        }
        assert!(bench.database.metrics().flush_failures > 10);
        assert_eq!(bench.tables().len(), once, "{operation:?}");
        assert_eq!(count(&bench, FileNumber::from_manifest_name), 1);
        bench.faults.clear();
        bench.stage.clock.advance(Duration::from_secs(20));
        bench.run();
        assert_eq!(bench.database.metrics().memtables, 0, "the flush is done");
        check_files(&bench);
        assert_eq!(count(&bench, FileNumber::from_manifest_name), 1);
    }
}
