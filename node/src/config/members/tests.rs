//! Which lists of members make sense, and when a node listens where others are sent.

use super::*;

fn joined(list: &str) -> Vec<MemberSettings> {
    (1..)
        .zip(list.split(','))
        .map(|(id, text)| MemberSettings::of_join(id, text).unwrap())
        .collect()
}

#[track_caller]
fn check_problems(members: &[MemberSettings], expected: &[&str]) {
    assert_eq!(problems_between(members), expected);
}

#[test]
fn a_member_of_the_list_may_have_a_name() {
    let members = joined("west=a:4801,b:4801");
    assert_eq!(members[0].name, "west");
    assert_eq!(members[0].client, "a:4800");
    assert_eq!(members[1].name, "n2");
    check_problems(&members, &[]);
    check_problems(&joined("x=a:4801,x=b:4801"), &["name x is given twice"]);
}

#[test]
fn names_are_short_and_plain() {
    for name in ["n1", "west-2.db_a", &"a".repeat(63)] {
        assert_eq!(check_name(name), Ok(()));
    }
    for name in ["", "a b", "ä", "a=b", "a\n", &"a".repeat(64)] {
        assert!(check_name(name).is_err(), "{name:?}");
    }
    assert!(MemberSettings::of_text("id=1,peer=a:4801,name=a b").is_err());
    assert!(MemberSettings::of_join(1, "=a:4801").is_err());
}

#[test]
fn neighbouring_ports_are_one_clear_message() {
    let expected = "h:4801 and h:4802 both take h:4801: unless --member names them, a node takes \
                    the port below its peer port for clients and the one above for HTTP, so keep \
                    peer ports of one host 3 apart";
    check_problems(&joined("h:4801,h:4802,h:4803"), &[expected]);
    check_problems(&joined("h:4801,h:4804,h:4807"), &[]);
    check_problems(&joined("h:4801,h:4801"), &["address h:4801 is given twice"]);
}

#[test]
fn metrics_on_loopback_may_have_one_port_everywhere() {
    let member = |text: &str| MemberSettings::of_text(text).unwrap();
    let local = "http=127.0.0.1:4802";
    check_problems(
        &[
            member(&format!("id=1,peer=a:4801,{local}")),
            member(&format!("id=2,peer=b:4801,{local}")),
        ],
        &[],
    );
    check_problems(
        &[member("id=1,peer=a:4801,client=a:4801")],
        &["id 1 has the address a:4801 twice"],
    );
}

#[test]
fn a_node_must_listen_where_others_are_sent() {
    let check = |told: &str, listener: &str, expected: bool| {
        let listener = listener.parse().unwrap();
        assert_eq!(reaches(told, listener), expected, "{told} {listener}");
    };
    check("10.0.0.1:4801", "10.0.0.1:4801", true);
    check("10.0.0.1:4801", "0.0.0.0:4801", true);
    check("[::1]:4801", "[::1]:4801", true);
    check("db1:4801", "10.0.0.1:4801", true);
    check("localhost:4801", "127.0.0.1:4801", true);
    check("10.0.0.1:4801", "10.0.0.1:0", true);
    check("10.0.0.1:4801", "127.0.0.1:4801", false);
    check("10.0.0.1:4801", "10.0.0.2:4801", false);
    check("db1:4801", "127.0.0.1:4801", false);
    check("10.0.0.1:4801", "0.0.0.0:4800", false);
}

#[test]
fn every_difference_is_named() {
    let own = joined("10.0.0.1:4801").remove(0);
    let address = |text: &str| text.parse().unwrap();
    let differences = own.differences(
        address("127.0.0.1:4800"),
        address("10.0.0.1:4801"),
        address("127.0.0.1:4802"),
    );
    assert_eq!(
        differences,
        [
            "client 10.0.0.1:4800 but --client 127.0.0.1:4800",
            "http 10.0.0.1:4802 but --http 127.0.0.1:4802",
        ]
    );
}

proptest::proptest! {
    #[test]
    fn arbitrary_lists_never_panic(join: String, full: String) {
        let members: Vec<_> = [MemberSettings::of_join(1, &join), MemberSettings::of_text(&full)]
            .into_iter()
            .filter_map(Result::ok)
            .collect();
        let _ = problems_between(&members);
    }
}
