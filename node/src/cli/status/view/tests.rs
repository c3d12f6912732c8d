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

fn heard(peer: u16) -> ReportedHeartbeat {
    ReportedHeartbeat {
        peer,
        state: "arriving".to_owned(),
        age_ms: Some(30 + u64::from(peer)),
        round_trip_us: Some(185),
        lost_permille: Some(12),
        lost_there_permille: None,
        clock_offset_ms: Some(1),
        role: None,
        term: None,
        committed: None,
        applied: None,
        sync_age_ms: None,
        sync_p99_us: None,
        disk_free_bytes: None,
        memory_bytes: None,
        version: None,
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
            heartbeats: (1..=3).filter(|peer| *peer != id).map(heard).collect(),
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
            r#""last_log":12,"applied":11,"lag":1,"heartbeat_age_ms":31,"heartbeat_state":"arriving","#,
            r#""round_trip_us":185,"lost_permille":12,"clock_offset_ms":1},"#,
            r#"{"id":2,"role":"follower","state":"up","client":"127.0.0.1:4810","#,
            r#""last_log":12,"applied":10,"lag":2,"heartbeat_age_ms":32,"heartbeat_state":"arriving","#,
            r#""round_trip_us":185,"lost_permille":12,"clock_offset_ms":1},"#,
            r#"{"id":3,"role":"unknown","state":"down","client":"127.0.0.1:4820","#,
            r#""last_log":null,"applied":null,"lag":null,"heartbeat_age_ms":33,"#,
            r#""heartbeat_state":"arriving","round_trip_us":185,"lost_permille":12,"#,
            r#""clock_offset_ms":1}],"heartbeats_blocked":[]}"#,
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

#[test]
fn blocked_heartbeats_are_named_and_do_no_harm() {
    let mut leader = up(1, Some(1));
    for heartbeat in &mut leader.report.as_mut().unwrap().heartbeats {
        heartbeat.state = "blocked".to_owned();
        heartbeat.age_ms = None;
    }
    let view = view(&[leader, up(2, Some(1)), up(3, Some(1))]);
    assert_eq!(view.health(), Health::Healthy);
    let text = view.table();
    let note = "udp heartbeats do not arrive: from node 2 at node 1, from node 3 at node 1;";
    assert!(text.contains(note), "{text}");
    assert_eq!(text.matches("udp blocked").count(), 2, "{text}");
    let json = view.json();
    let field = r#""heartbeats_blocked":[{"from":2,"at":1},{"from":3,"at":1}]"#;
    assert!(json.contains(field), "{json}");
}

#[test]
fn the_heartbeat_of_a_node_is_that_which_the_leader_hears() {
    let mut answers = [up(1, Some(2)), up(2, Some(2)), up(3, Some(2))];
    let seen = &mut answers[1].report.as_mut().unwrap().heartbeats;
    seen.retain(|heartbeat| heartbeat.peer == 1);
    seen[0].age_ms = Some(900);
    let json = view(&answers).json();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let age = |at: usize| json["nodes"][at]["heartbeat_age_ms"].as_u64();
    // Node 1 as the leader hears it, the leader as node 1 does, node 3 of which only node 1 knows.
    assert_eq!([age(0), age(1), age(2)], [Some(900), Some(32), Some(33)]);
}
