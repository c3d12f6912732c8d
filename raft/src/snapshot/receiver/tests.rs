use openraft::SnapshotMeta;

use super::*;
use crate::type_config::{LeaderId, LogId, StoredMembership};

fn vote(term: u64, node: u64) -> Vote {
    Vote {
        leader_id: LeaderId {
            term,
            node_id: node,
        },
        committed: true,
    }
}

/// A transfer of node 2, leader of term 5.
fn running() -> Identity {
    Identity {
        from: NodeId::new(2),
        vote: vote(5, 2),
        meta: SnapshotMeta {
            last_log_id: Some(LogId::new(vote(4, 1).leader_id, 90)),
            last_membership: StoredMembership::default(),
        },
        description: 7,
    }
}

#[test]
fn the_same_leader_goes_on_with_the_same_files() {
    assert_eq!(running().beginning(&running(), false), Beginning::Resume);
    let elected_again = Identity {
        vote: vote(8, 2),
        ..running()
    };
    let beginning = running().beginning(&elected_again, false);
    assert_eq!(beginning, Beginning::Resume);
}

#[test]
fn other_files_or_a_newer_leader_take_the_place() {
    let other_files = Identity {
        description: 8,
        ..running()
    };
    let newer = Identity {
        from: NodeId::new(3),
        vote: vote(6, 3),
        ..running()
    };
    for wanted in [other_files, newer] {
        assert_eq!(running().beginning(&wanted, false), Beginning::Start);
        assert_eq!(running().beginning(&wanted, true), Beginning::Wait);
    }
}

#[test]
fn an_older_leader_is_told_of_the_newer_one() {
    let older = Identity {
        from: NodeId::new(1),
        vote: vote(4, 1),
        ..running()
    };
    for finishing in [false, true] {
        let beginning = running().beginning(&older, finishing);
        assert_eq!(beginning, Beginning::Outvoted(vote(5, 2)));
    }
}

#[test]
fn an_installation_answers_only_to_the_vote_that_it_was_begun_with() {
    let elected_again = Identity {
        vote: vote(8, 2),
        ..running()
    };
    assert_eq!(running().beginning(&running(), true), Beginning::Resume);
    let beginning = running().beginning(&elected_again, true);
    assert_eq!(beginning, Beginning::Wait);
}
