use super::*;

fn node(id: u16) -> NodeId {
    NodeId::new(id)
}

fn voters(ids: &[u16]) -> Vec<BTreeSet<NodeId>> {
    vec![ids.iter().copied().map(NodeId::new).collect()]
}

fn clocks(heard: &[(u16, u64)]) -> PeerClocks {
    let clocks = PeerClocks::default();
    for (peer, wall) in heard {
        clocks.observe(node(*peer), WallMillis::new(*wall));
    }
    clocks
}

fn check(heard: &[(u16, u64)], ids: &[u16], own: u64, expected: Option<u64>) {
    let majority = clocks(heard).majority(&voters(ids), (node(1), WallMillis::new(own)));
    assert_eq!(
        majority,
        expected.map(WallMillis::new),
        "{heard:?} among {ids:?}, own {own}"
    );
}

#[test]
fn the_majority_time_is_the_one_that_most_clocks_have_passed() {
    check(&[], &[1], 100, Some(100));
    check(&[(2, 90)], &[1, 2], 100, Some(90));
    check(&[(2, 90), (3, 80)], &[1, 2, 3], 100, Some(90));
    check(&[(2, 90), (3, 80)], &[1, 2, 3], 70, Some(80));
    check(&[(2, 9_000), (3, 80)], &[1, 2, 3], 100, Some(100));
    check(&[(2, 5), (3, 80), (4, 60)], &[1, 2, 3, 4], 100, Some(60));
}

#[test]
fn a_learner_and_a_silent_voter_do_not_count() {
    check(&[(4, 9_000)], &[1, 2, 3], 100, None);
    check(&[(2, 90), (4, 9_000)], &[1, 2, 3], 100, Some(90));
    check(&[], &[], 100, None);
}

#[test]
fn a_joint_membership_needs_both_majorities() {
    let configs = vec![voters(&[1, 2, 3]).remove(0), voters(&[1, 4, 5]).remove(0)];
    let own = (node(1), WallMillis::new(100));
    let heard = clocks(&[(2, 90), (4, 50)]);
    assert_eq!(heard.majority(&configs, own), Some(WallMillis::new(50)));
    let heard = clocks(&[(2, 90)]);
    assert_eq!(heard.majority(&configs, own), None);
}

#[test]
fn a_peer_clock_never_goes_back() {
    let heard = clocks(&[(2, 90), (2, 50)]);
    let majority = heard.majority(&voters(&[1, 2]), (node(1), WallMillis::new(100)));
    assert_eq!(majority, Some(WallMillis::new(90)));
}
