#![expect(
    clippy::disallowed_methods,
    reason = "these tests look at files and their modes"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kelp_seams::{ManualClock, SeededRng};

use super::*;

const CLUSTER: ClusterId = ClusterId::new([0xab; 16]);

fn clock() -> ManualClock {
    let clock = ManualClock::new();
    clock.set_wall(WallMillis::new(1_767_225_600_000));
    clock
}

fn authority() -> Authority {
    Authority::generate(CLUSTER, &clock(), &SeededRng::new(1)).unwrap()
}

fn node_request(hosts: &[&str]) -> NodeRequest {
    NodeRequest {
        node: NodeId::new(3),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        lifetime: LEAF_LIFETIME,
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn authority_on_disk_is_the_one_that_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("authority");
    let made = init_authority(&directory, &clock(), &SeededRng::new(5)).unwrap();
    assert_eq!(mode_of(&directory.join("ca.key")), 0o600);
    let opened = Authority::open(&directory).unwrap();
    assert_eq!(opened.cluster(), made.cluster());
    assert_eq!(opened.certificate_pem(), made.certificate_pem());
    let summary = describe(&directory.join("ca.crt")).unwrap();
    assert_eq!(summary.identity, Identity::Authority(made.cluster()));
    let again = init_authority(&directory, &clock(), &SeededRng::new(6));
    assert!(matches!(again, Err(CertsError::Exists { .. })));
    assert_eq!(
        Authority::open(&directory).unwrap().cluster(),
        made.cluster()
    );
}

#[test]
fn clusters_differ_by_the_random_source() {
    let folder = tempfile::tempdir().unwrap();
    let init = |name: &str, seed| {
        let directory = folder.path().join(name);
        init_authority(&directory, &clock(), &SeededRng::new(seed)).unwrap()
    };
    assert_ne!(init("a", 1).cluster(), init("b", 2).cluster());
    assert_eq!(init("c", 1).cluster(), init("d", 1).cluster());
}

#[test]
fn node_certificate_carries_its_name_hosts_and_usages() {
    let request = node_request(&["Db3.Example.org", "10.0.0.3", "::1"]);
    let bundle = authority().issue_node(&request, &clock(), &SeededRng::new(2));
    let pem = bundle.unwrap().certificate_pem;
    let summary = summarize(pem.as_bytes(), Path::new("test")).unwrap();
    assert_eq!(summary.identity, Identity::Node(CLUSTER, NodeId::new(3)));
    let name = format!("n3.{CLUSTER}.kelp.internal");
    assert_eq!(summary.names, [&name, "db3.example.org", "10.0.0.3", "::1"]);
    assert!(summary.server && summary.client);
    let start = clock().wall().get();
    let lifetime = u64::try_from(LEAF_LIFETIME.as_millis()).unwrap();
    assert_eq!(summary.not_after.get(), start + lifetime);
    assert_eq!(summary.not_before.get(), start - 3_600_000);
    assert!(summary.issuer.contains(&format!("kelp {CLUSTER}")));
}

#[test]
fn client_certificate_is_for_clients_only() {
    let bundle = authority().issue_client("app-1", LEAF_LIFETIME, &clock(), &SeededRng::new(2));
    let pem = bundle.unwrap().certificate_pem;
    let summary = summarize(pem.as_bytes(), Path::new("test")).unwrap();
    assert_eq!(
        summary.identity,
        Identity::Client(CLUSTER, "app-1".to_owned())
    );
    assert!(summary.client && !summary.server);
}

#[test]
fn opened_authority_issues_under_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let made = init_authority(folder.path(), &clock(), &SeededRng::new(5)).unwrap();
    let opened = Authority::open(folder.path()).unwrap();
    let issuer = |authority: &Authority| {
        let bundle = authority.issue_node(&node_request(&[]), &clock(), &SeededRng::new(2));
        let pem = bundle.unwrap().certificate_pem;
        summarize(pem.as_bytes(), Path::new("test")).unwrap().issuer
    };
    assert_eq!(issuer(&made), issuer(&opened));
}

#[test]
fn names_that_could_stand_for_others_are_refused() {
    let rng = SeededRng::new(2);
    for name in [
        "",
        "a.b",
        "UPPER",
        "-a",
        "a-",
        "n1.x",
        "a b",
        "ä",
        &"a".repeat(64),
    ] {
        let refused = authority().issue_client(name, LEAF_LIFETIME, &clock(), &rng);
        assert!(
            matches!(refused, Err(CertsError::BadName { .. })),
            "{name:?}"
        );
    }
    let other = node_name(CLUSTER, NodeId::new(1));
    let rooted = format!("{other}.");
    for host in [
        "",
        "*.example.org",
        "a b",
        &other,
        &rooted,
        &other.to_uppercase(),
    ] {
        let refused = authority().issue_node(&node_request(&[host]), &clock(), &rng);
        assert!(
            matches!(refused, Err(CertsError::BadName { .. })),
            "{host:?}"
        );
    }
}

#[test]
fn only_the_exact_spelling_of_a_name_is_an_identity() {
    let node = node_name(CLUSTER, NodeId::new(7));
    assert_eq!(
        names::parse_name(&node),
        Some(Identity::Node(CLUSTER, NodeId::new(7)))
    );
    let hex = CLUSTER.to_string();
    for name in [
        format!("n07.{hex}.kelp.internal"),
        format!("n+7.{hex}.kelp.internal"),
        format!("n65536.{hex}.kelp.internal"),
        format!("n7.{}.kelp.internal", hex.to_uppercase()),
        format!("u.a.b.{hex}.kelp.internal"),
        format!("n7.{hex}.kelp.internal.org"),
        format!("n7.{hex}xkelp.internal"),
        "n7.kelp.internal".to_owned(),
    ] {
        assert_eq!(names::parse_name(&name), None, "{name}");
    }
}

#[test]
fn bundle_is_read_back_and_its_key_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("n3");
    let issued = authority().issue_node(&node_request(&[]), &clock(), &SeededRng::new(2));
    let issued = issued.unwrap();
    issued.write(&directory).unwrap();
    assert_eq!(mode_of(&directory.join("node.key")), 0o600);
    assert!(!directory.join("ca.key").exists());
    let read = Bundle::read(&directory, BundleKind::Node).unwrap();
    assert_eq!(read.key_pem, issued.key_pem);
    assert_eq!(read.certificate_pem, issued.certificate_pem);
    assert_eq!(read.authority_pem, issued.authority_pem);
    assert!(!format!("{read:?}").contains("PRIVATE"));
    assert!(matches!(
        issued.write(&directory),
        Err(CertsError::Exists { .. })
    ));
}

#[test]
fn nothing_is_written_where_one_file_is_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("n3");
    let issued = authority().issue_node(&node_request(&[]), &clock(), &SeededRng::new(2));
    let issued = issued.unwrap();
    issued.write(&directory).unwrap();
    assert_eq!(mode_of(&directory), 0o700);
    fs::remove_file(directory.join("node.key")).unwrap();
    assert!(matches!(
        issued.write(&directory),
        Err(CertsError::Exists { .. })
    ));
    assert!(!directory.join("node.key").exists());
    issued.replace(&directory).unwrap();
    assert!(Bundle::read(&directory, BundleKind::Node).is_ok());
}

#[test]
fn key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let issued = authority().issue_node(&node_request(&[]), &clock(), &SeededRng::new(2));
    issued.unwrap().write(folder.path()).unwrap();
    let key = folder.path().join("node.key");
    for (mode, accepted) in [(0o644, false), (0o660, false), (0o640, true), (0o400, true)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let read = Bundle::read(folder.path(), BundleKind::Node);
        assert_eq!(read.is_ok(), accepted, "mode {mode:o}");
    }
}

#[test]
fn authority_with_the_key_of_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    init_authority(&ours, &clock(), &SeededRng::new(1)).unwrap();
    init_authority(&theirs, &clock(), &SeededRng::new(2)).unwrap();
    fs::copy(theirs.join("ca.key"), ours.join("ca.key")).unwrap();
    assert!(matches!(
        Authority::open(&ours),
        Err(CertsError::KeyMismatch { .. })
    ));
}

#[test]
fn leaf_in_place_of_the_authority_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let issued = authority().issue_node(&node_request(&[]), &clock(), &SeededRng::new(2));
    let issued = issued.unwrap();
    fs::write(folder.path().join("ca.crt"), &issued.certificate_pem).unwrap();
    let key = folder.path().join("ca.key");
    fs::write(&key, &issued.key_pem).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let opened = Authority::open(folder.path());
    assert!(matches!(opened, Err(CertsError::NotAuthority { .. })));
}

proptest::proptest! {
    #[test]
    fn arbitrary_files_never_panic(bytes: Vec<u8>, name: String) {
        let _ = summarize(&bytes, Path::new("test"));
        let _ = summarize_der(&bytes.into());
        let _ = names::parse_name(&name);
        let _ = names::host_san(&name);
        let _ = client_name(CLUSTER, &name);
    }
}
