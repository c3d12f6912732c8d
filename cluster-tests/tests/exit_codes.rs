//! Bad input, from outside: the real program answers with one line and its exit code, quickly, and
//! loses nothing.
#![expect(
    clippy::disallowed_methods,
    reason = "this test starts programs, looks at files and looks for free ports"
)]

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use kelp_cluster_tests::kelp_program;
use rustix::process::{Pid, Signal};

/// Longer than any answer takes on a busy machine; a wrong certificate is told long before.
const PATIENCE: &str = "60s";

/// A folder to work in, and the program.
struct Stage {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self {
            program: kelp_program().expect("it was built before"),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program in the folder, with the words of one line and without any `KELP_` variable.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words(line)).current_dir(self.folder.path());
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("KELP_") {
                command.env_remove(variable);
            }
        }
        command
    }

    fn run(&self, line: &str, input: &[u8]) -> Output {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that refuses its arguments reads nothing.
        let _ = child
            .stdin
            .take()
            .expect("a pipe was asked for")
            .write_all(input);
        child.wait_with_output().expect("it ends by itself")
    }

    /// Runs one line, which must end with this code and say this.
    #[track_caller]
    fn check(&self, line: &str, exit: i32, says: &str) {
        self.check_with(line, b"", exit, says);
    }

    #[track_caller]
    fn check_with(&self, line: &str, input: &[u8], exit: i32, says: &str) {
        let output = self.run(line, input);
        let shown: String = line.chars().take(200).collect();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "kelp {shown}: {words}");
        assert!(words.contains(says), "kelp {shown}: {words}");
        if exit != 0 {
            assert!(words.starts_with("kelp: "), "kelp {shown}: {words}");
            assert_eq!(words.lines().count(), 1, "kelp {shown}: {words}");
        }
    }

    fn certify_node(&self, prefix: &str, node: u16) {
        self.check(
            &format!("certs issue --ca-dir {prefix}ca --node {node} --out {prefix}n{node}"),
            0,
            "",
        );
    }

    fn start(&self, line: &str) -> RunningNode {
        let child = self.command(line).spawn();
        RunningNode(child.expect("the program starts"))
    }

    /// An authority `ca` with the bundles `n1` and `client`.
    fn certify(&self, prefix: &str) {
        self.check(&format!("certs init --ca-dir {prefix}ca"), 0, "");
        self.certify_node(prefix, 1);
        self.check(
            &format!("certs issue --ca-dir {prefix}ca --client app --out {prefix}client"),
            0,
            "",
        );
    }
}

/// The words of a line; two quotes stand for an empty word.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace()
        .map(|word| if word == "''" { "" } else { word })
        .collect()
}

/// The first of `count` ports in a row that are free now.
fn free_ports(count: u16) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Below the ports that the system hands out, so that nobody gets one by chance.
    let first = 12_000 + u16::try_from(std::process::id() % 15_000).expect("it is below 15,000");
    (first..)
        .step_by(usize::from(count))
        .find(|port| (*port..*port + count).all(is_free))
        .expect("some ports are free")
}

/// A node that is killed when the test ends before it.
struct RunningNode(Child);

impl RunningNode {
    /// Sends a signal and returns the exit code.
    fn end(mut self, signal: Signal) -> Option<i32> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a process has a positive number");
        rustix::process::kill_process(pid, signal).expect("it was not waited for yet");
        self.0.wait().expect("it is a child").code()
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_wrong_command_line_is_told_before_anything_is_touched() {
    let stage = Stage::new();
    stage.certify("");
    let start = "start --dir data --certs n1";
    for (line, says) in [
        ("get key --bogus", "unexpected argument '--bogus'"),
        ("get key --endpoints nowhere", "not host:port"),
        ("get key --timeout 0s", "leaves no time"),
        ("get key --ca absent.crt", "no such file"),
        ("scan --limit 0", "--limit"),
        ("bench --value-bytes 9MiB", "at most 8 MiB"),
        (start, "--join 127.0.0.1:4801 founds"),
        (&format!("{start} --heartbeat 5"), "needs a unit"),
        (
            &format!("{start} --join 10.0.0.1:4801"),
            "--client 127.0.0.1:4800",
        ),
        (
            &format!("{start} --join 127.0.0.1:4801,127.0.0.1:4802"),
            "3 apart",
        ),
        (
            &format!("{start} --join 127.0.0.1:4801 --name west"),
            "--name west",
        ),
        (
            "start --dir data --certs absent --join 127.0.0.1:4801",
            "kelp certs",
        ),
        ("dev --nodes 0", "--nodes"),
        ("dev node start 1 --dir absent", "no development cluster"),
    ] {
        stage.check(line, 2, says);
    }
    assert!(!stage.path("data").exists());
}

#[test]
fn a_directory_that_is_not_ours_is_refused_and_left_alone() {
    let stage = Stage::new();
    stage.certify("");
    fs::create_dir(stage.path("foreign")).unwrap();
    fs::write(stage.path("foreign/notes"), "precious").unwrap();
    fs::write(stage.path("file"), "precious").unwrap();
    for (directory, says) in [
        ("foreign", "holds notes"),
        ("file", "is a file"),
        ("file/below", "is a file"),
        // Nobody makes directories there, not even the administrator.
        ("/sys/kelp-test", "choose another with --dir"),
    ] {
        let start = format!(
            "start --dir {directory} --certs n1 --join 127.0.0.1:4801 --log error,openraft=off"
        );
        stage.check(&start, 5, says);
        stage.check(&format!("dev --base-port 0 --dir {directory}"), 5, says);
    }
    let names: Vec<_> = fs::read_dir(stage.path("foreign")).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(fs::read(stage.path("foreign/notes")).unwrap(), b"precious");
    assert_eq!(fs::read(stage.path("file")).unwrap(), b"precious");
    stage.check(
        "certs issue --ca-dir ca --node 1 --out n1",
        5,
        "exists already",
    );
}

#[test]
fn without_a_node_every_command_is_unavailable_and_says_how_to_start_one() {
    let stage = Stage::new();
    for command in ["get key", "put key value", "del key", "scan", "status"] {
        let line = format!("{command} --endpoints 127.0.0.1:1 --timeout 300ms");
        stage.check(&line, 3, "`kelp dev` or `kelp start`");
    }
}

#[test]
fn a_running_node_refuses_what_is_wrong_and_loses_nothing() {
    let stage = Stage::new();
    stage.certify("");
    stage.certify("other-");
    let port = free_ports(3);
    let (peer, http) = (port + 1, port + 2);
    let listeners = format!(
        "--client 127.0.0.1:{port} --peer 127.0.0.1:{peer} --http 127.0.0.1:{http} --log error,openraft=off"
    );
    let join = format!("--join 127.0.0.1:{peer}");
    let reach = format!("--endpoints 127.0.0.1:{port} --timeout {PATIENCE}");

    let node = stage.start(&format!("start --dir data --certs n1 {listeners} {join}"));
    stage.check(&format!("put key value {reach}"), 0, "");
    refuses_bad_requests(&stage, &reach);
    refuses_wrong_certificates(&stage, &reach);

    let elsewhere = format!("start --dir elsewhere --certs n1 {listeners} {join}");
    stage.check(&elsewhere, 3, "choose another with --client");
    stage.check(&format!("dev --dir dev --base-port {port}"), 3, "is taken");
    let again = format!("start --dir data --certs n1 {listeners}");
    stage.check(&again, 5, "is open already");
    assert_eq!(node.end(Signal::TERM), Some(0));

    let stranger = format!("start --dir data --certs other-n1 {listeners}");
    stage.check(&stranger, 5, "data belongs to node 1 of cluster");
    // The list of members is in the log by now.
    let node = stage.start(&again);
    let output = stage.run(&format!("get key {reach}"), b"");
    assert_eq!(output.stdout, b"value\n");
    assert_eq!(node.end(Signal::INT), Some(130));
}

#[test]
fn the_list_of_members_is_needed_only_once() {
    let stage = Stage::new();
    stage.certify("");
    stage.certify_node("", 2);
    stage.certify_node("", 3);
    let first = free_ports(9);
    let client = |node: u16| first + 3 * (node - 1);
    let start = |node: u16, list: &str| {
        let port = client(node);
        stage.start(&format!(
            "start --dir data{node} --certs n{node} --client 127.0.0.1:{port} \
             --peer 127.0.0.1:{} --http 127.0.0.1:{} --log error,openraft=off {list}",
            port + 1,
            port + 2,
        ))
    };
    let list = format!(
        "--join 127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}",
        client(1) + 1,
        client(2) + 1,
        client(3) + 1,
    );
    for list in [list.as_str(), ""] {
        let nodes: Vec<RunningNode> = (1..=3).map(|node| start(node, list)).collect();
        for node in 1..=3 {
            let port = client(node);
            let reach = format!("--endpoints 127.0.0.1:{port} --timeout {PATIENCE}");
            stage.check(&format!("put key{node} value {reach}"), 0, "");
        }
        drop(nodes);
    }
}

#[test]
fn a_node_goes_on_when_its_log_lines_cannot_be_written() {
    let stage = Stage::new();
    stage.certify("");
    let port = free_ports(3);
    let full = fs::File::options().write(true).open("/dev/full");
    let line = format!(
        "start --dir data1 --certs n1 --client 127.0.0.1:{port} --peer 127.0.0.1:{} \
         --http 127.0.0.1:{} --log debug --join 127.0.0.1:{}",
        port + 1,
        port + 2,
        port + 1,
    );
    let mut command = stage.command(&line);
    let child = command.stderr(full.expect("every Linux has it")).spawn();
    let node = RunningNode(child.expect("the program starts"));
    let reach = format!("--endpoints 127.0.0.1:{port} --timeout {PATIENCE}");
    stage.check(&format!("put key value {reach}"), 0, "");
    stage.check(&format!("get key {reach}"), 0, "");
    drop(node);
}

fn refuses_bad_requests(stage: &Stage, reach: &str) {
    let long_key = "k".repeat(32 * 1024 + 1);
    let value_bytes = 8 * 1024 * 1024;
    stage.check(&format!("get absent {reach}"), 1, "no key 'absent'");
    stage.check(&format!("del absent {reach}"), 1, "no key 'absent'");
    stage.check(&format!("put '' value {reach}"), 5, "key is empty");
    stage.check(&format!("get '' {reach}"), 5, "key is empty");
    let oversize = format!("put {long_key} value {reach}");
    stage.check(&oversize, 5, "over the limit of 32768");
    let put = format!("put big - {reach}");
    stage.check_with(&put, &vec![0; value_bytes + 1], 5, "over the limit");
    stage.check_with(&put, &vec![0; value_bytes], 0, "");
    stage.check(&format!("scan z a {reach}"), 2, "before its start");
    stage.check(&format!("status {reach}"), 0, "");
}

fn refuses_wrong_certificates(stage: &Stage, reach: &str) {
    let bundle = |ca: &str, own: &str| {
        format!("{reach} --ca {ca}/ca.crt --cert {own}/client.crt --key {own}/client.key")
    };
    let right = bundle("client", "client");
    stage.check(&format!("get absent {right}"), 1, "");
    for wrong in [
        bundle("other-client", "other-client"),
        bundle("client", "other-client"),
    ] {
        for command in ["get key", "put key lost", "scan", "status", "bench"] {
            stage.check(&format!("{command} {wrong}"), 5, "--ca, --cert and --key");
        }
    }
}
