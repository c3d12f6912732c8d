//! The fixed JSON, and what counts as healthy.

use super::*;

fn member(id: u16) -> ReportedMember {
    let port = 4790 + 10 * id;
    ReportedMember {
        id,
        name: format!("n{id}"),
        voter: true,
        client: format!("127.0.0.1:{port}"),
        peer: format!("127.0.0.1:{}", port + 1),
        http: format!("127.0.0.1:{}", port + 2),
    }
}

fn up(id: u16, leader: Option<u16>) -> Answer {
    let role = if leader == Some(id) {
        ReportedRole::Leader
    } else {
        ReportedRole::Follower
    };
    Answer {
        member: member(id),
        report: Some(StatusReport {
            cluster_id: "c".to_owned(),
            node: id,
            role,
            term: 3,
            leader,
            leader_contact_ms: Some(40),
            last_log: Some(12),
            committed: Some(12),
            applied: Some(12 - u64::from(id)),
            chain_hash: String::new(),
            stopping: false,
            members: (1..=3).map(member).collect(),
        }),
    }
}

fn down(id: u16) -> Answer {
    Answer {
        member: member(id),
        report: None,
    }
}

fn view(answers: &[Answer]) -> ClusterView {
    ClusterView::new("c".to_owned(), answers)
}

#[test]
fn the_json_is_the_fixed_one() {
    let view = view(&[up(1, Some(1)), up(2, Some(1)), down(3)]);
    assert_eq!(
        view.json(),
        concat!(
            r#"{"cluster_id":"c","leader":1,"term":3,"nodes":["#,
            r#"{"id":1,"role":"leader","state":"up","client":"127.0.0.1:4800","#,
            r#""last_log":12,"applied":11,"lag":1,"heartbeat_age_ms":40},"#,
            r#"{"id":2,"role":"follower","state":"up","client":"127.0.0.1:4810","#,
            r#""last_log":12,"applied":10,"lag":2,"heartbeat_age_ms":40},"#,
            r#"{"id":3,"role":"unknown","state":"down","client":"127.0.0.1:4820","#,
            r#""last_log":null,"applied":null,"lag":null,"heartbeat_age_ms":null}]}"#,
            "\n"
        )
    );
}

#[test]
fn health_follows_from_who_follows_whom() {
    let check = |answers: &[Answer], health, code| {
        let view = view(answers);
        assert_eq!(view.health(), health);
        assert_eq!(view.health().exit().code(), code);
    };
    let one = Some(1);
    check(&[up(1, one), up(2, one), up(3, one)], Health::Healthy, 0);
    check(&[up(1, one), up(2, one), down(3)], Health::Degraded, 1);
    check(&[up(1, one), up(2, one), up(3, None)], Health::Degraded, 1);
    check(&[up(1, one), down(2), down(3)], Health::NoQuorum, 2);
    check(
        &[up(1, None), up(2, None), up(3, None)],
        Health::NoQuorum,
        2,
    );
}

#[test]
fn a_node_that_is_up_but_does_not_take_its_part_makes_it_degraded() {
    let check = |spoil: fn(&mut StatusReport), expected| {
        let mut third = up(3, Some(1));
        if let Some(report) = &mut third.report {
            report.committed = Some(12);
            spoil(report);
        }
        let mut leader = up(1, Some(1));
        if let Some(report) = &mut leader.report {
            report.committed = Some(LAG_MAX + 50);
            report.applied = report.committed;
        }
        let mut second = leader.clone();
        second.member = member(2);
        if let Some(report) = &mut second.report {
            (report.node, report.role) = (2, ReportedRole::Follower);
        }
        assert_eq!(view(&[leader, second, third]).health(), expected);
    };
    check(|report| report.applied = Some(50), Health::Healthy);
    check(|report| report.applied = Some(49), Health::Degraded);
    check(|report| report.applied = None, Health::Degraded);
    let caught_up = |report: &mut StatusReport| report.applied = Some(LAG_MAX);
    check(caught_up, Health::Healthy);
    check(
        |report| {
            report.applied = Some(LAG_MAX);
            report.stopping = true;
        },
        Health::Degraded,
    );
    check(
        |report| {
            report.applied = Some(LAG_MAX);
            report.role = ReportedRole::Learner;
        },
        Health::Degraded,
    );
}

#[test]
fn the_table_says_what_to_do_without_a_quorum() {
    let table = view(&[up(1, None), down(2), down(3)]).table();
    assert!(
        table.contains("writes are refused until 2 nodes are up"),
        "{table}"
    );
    assert!(table.contains("no leader"), "{table}");
    assert_eq!(table.lines().count(), 5, "{table}");
}

#[test]
fn a_leader_that_was_restarted_leads_no_more() {
    let mut restarted = up(1, Some(1));
    if let Some(report) = &mut restarted.report {
        report.role = ReportedRole::Follower;
        report.leader = None;
    }
    let view = view(&[restarted, up(2, Some(1)), up(3, Some(1))]);
    assert_eq!(view.health(), Health::NoQuorum);
    assert!(view.json().contains("\"leader\":null"));
}
