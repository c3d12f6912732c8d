//! A new directory becomes a complete cluster, and an existing one is taken as it is.

use super::*;

fn options(directory: &Path) -> DevOptions {
    DevOptions {
        nodes: None,
        directory: Some(directory.to_owned()),
        base_port: Some(0),
        resp_port: None,
        keep: false,
        restart: false,
    }
}

#[test]
fn a_new_directory_gets_certificates_ports_and_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let cluster = create(&layout, &options(directory.path())).unwrap();
    assert_eq!(cluster.cluster_id.len(), 32);
    assert_eq!(cluster.nodes.len(), 3);
    assert!(cluster.nodes.iter().all(|node| node.pid.is_none()));
    assert!(files::exists(&layout.node_certs(3)));
    assert!(files::exists(&layout.client_certs()));
    assert_eq!(ClusterFile::read(directory.path()).unwrap(), Some(cluster));
}

#[test]
fn a_resumed_cluster_keeps_its_ports_and_size() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let made = create(&layout, &options(directory.path())).unwrap();
    let resumed = resume(made.clone(), &options(directory.path())).unwrap();
    assert_eq!(resumed, made);
    let five = DevOptions {
        nodes: Some(5),
        ..options(directory.path())
    };
    assert_eq!(resume(made.clone(), &five).unwrap_err().exit, Exit::Usage);
    let elsewhere = DevOptions {
        base_port: Some(9),
        ..options(directory.path())
    };
    assert_eq!(resume(made, &elsewhere).unwrap_err().exit, Exit::Usage);
}

#[test]
fn children_are_told_everything_by_flags() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let cluster = create(&layout, &options(directory.path())).unwrap();
    let arguments = arguments(&layout, &cluster.nodes[0], &cluster);
    assert_eq!(
        arguments.iter().filter(|word| *word == "--member").count(),
        3
    );
    assert_eq!(arguments[0], "--dir");
}

#[test]
fn the_announcement_begins_with_ready_and_names_every_endpoint() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let cluster = create(&layout, &options(directory.path())).unwrap();
    let text = announcement(&cluster, &layout, 2, "kelp");
    assert!(text.starts_with("ready\n"));
    assert!(text.contains(&cluster.endpoints()));
    assert!(text.contains("node 2 leader"));
}

#[test]
fn a_temporary_directory_is_removed_unless_kept() {
    let nowhere = DevOptions {
        directory: None,
        ..options(Path::new(""))
    };
    let home = Home::open(&nowhere).unwrap();
    let path = home.layout.root().to_owned();
    assert!(files::exists(&path));
    home.close(false);
    assert!(!files::exists(&path));
    let home = Home::open(&nowhere).unwrap();
    let path = home.layout.root().to_owned();
    home.close(true);
    assert!(files::exists(&path));
    files::remove_directory(&path).unwrap();
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let precious = directory.path().join("n1");
    files::create_directory(&precious).unwrap();
    let refused = Home::open(&options(directory.path())).err().unwrap();
    assert_eq!(refused.exit, Exit::Refused);
    assert!(refused.message.contains("holds n1"), "{refused}");
    assert_eq!(files::list(directory.path()).unwrap(), ["n1"]);
}

#[test]
fn an_empty_directory_is_marked_and_taken_again() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new");
    for _ in 0..2 {
        let home = Home::open(&options(&directory)).unwrap();
        create(&home.layout, &options(&directory)).unwrap();
        forget(&home.layout, 3).unwrap();
    }
    assert_eq!(files::list(&directory).unwrap(), ["KELP_DEV", "certs"]);
}

#[test]
fn data_of_a_node_without_the_cluster_file_is_never_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    create(&layout, &options(directory.path())).unwrap();
    files::create_directory(&layout.data(2)).unwrap();
    files::remove(&directory.path().join(CLUSTER_FILE)).unwrap();
    let refused = create(&layout, &options(directory.path())).unwrap_err();
    assert_eq!(refused.exit, Exit::Refused);
    assert!(refused.message.contains("is gone"), "{refused}");
    assert!(files::exists(&layout.data(2)));
}
