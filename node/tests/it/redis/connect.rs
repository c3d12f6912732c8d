//! What real clients send before the first command of their users.

use super::*;

/// Sends the bytes, exactly as the client does, and checks the replies that it waits for.
async fn check(wire: &mut Wire, bytes: &[u8], expected: &[&str]) {
    wire.send(bytes).await;
    for expected in expected {
        let reply = wire.next().await.expect("a reply");
        assert!(
            reply.starts_with(expected),
            "{}: {reply}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn redis_cli_connects() {
    alone(async |mut wire| {
        let documents = b"*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n";
        check(&mut wire, documents, &["[\"append\" [\"summary\""]).await;
        let info = b"*2\r\n$4\r\nINFO\r\n$6\r\nSERVER\r\n";
        check(&mut wire, info, &["\"# Server\r\nredis_version:7."]).await;
        let hello = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
        check(
            &mut wire,
            hello,
            &["{\"server\": \"redis\", \"version\": \"7."],
        )
        .await;
        check(&mut wire, documents, &["{\"append\": {\"summary\""]).await;
        check(
            &mut wire,
            b"*1\r\n$7\r\nCOMMAND\r\n",
            &["[[\"append\" :3 (write"],
        )
        .await;
    });
}

#[test]
fn redis_benchmark_connects() {
    alone(async |mut wire| {
        let save = b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$4\r\nsave\r\n";
        let append = b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nappendonly\r\n";
        let both = [&save[..], &append[..]].concat();
        let expected = ["[\"save\" \"\"]", "[\"appendonly\" \"yes\"]"];
        check(&mut wire, &both, &expected).await;
        check(&mut wire, b"PING\r\n", &["PONG"]).await;
    });
}

#[test]
fn redis_py_connects() {
    alone(async |mut wire| {
        let hello = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
        check(&mut wire, hello, &["{\"server\": \"redis\", \"version\""]).await;
        let maintenance = b"*5\r\n$6\r\nCLIENT\r\n$19\r\nMAINT_NOTIFICATIONS\r\n$2\r\nON\r\n\
            $20\r\nmoving-endpoint-type\r\n$11\r\ninternal-ip\r\n";
        let unknown = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.";
        check(&mut wire, maintenance, &[unknown]).await;
        let library =
            b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$8\r\nredis-py\r\n\
            *4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$5\r\n7.0.0\r\n";
        check(&mut wire, library, &["OK", "OK"]).await;
        check(&mut wire, b"*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n", &["OK"]).await;
        let listed = wire.ask("CLIENT LIST").await;
        assert!(listed.contains("db=1"), "{listed}");
        assert!(
            listed.contains("resp=3 lib-name=redis-py lib-ver=7.0.0"),
            "{listed}"
        );
    });
}

#[test]
fn ioredis_connects_with_everything_in_one_pipeline() {
    alone(async |mut wire| {
        let pipeline = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nselect\r\n$1\r\n2\r\n\
            *3\r\n$6\r\nclient\r\n$7\r\nsetname\r\n$3\r\nweb\r\n\
            *4\r\n$6\r\nclient\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$7\r\nioredis\r\n\
            *4\r\n$6\r\nclient\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$5\r\n5.8.0\r\n\
            *1\r\n$4\r\ninfo\r\n";
        let expected = ["{\"server\": \"redis\"", "OK", "OK", "OK", "OK"];
        check(&mut wire, pipeline, &expected).await;
        let info = wire.next().await.expect("a reply");
        assert!(info.contains("\r\nloading:0\r\n"), "{info}");
        assert_eq!(wire.ask("CLIENT GETNAME").await, "\"web\"");
    });
}

#[test]
fn clients_of_older_protocols_go_on_with_version_2() {
    alone(async |mut wire| {
        assert_eq!(
            wire.ask("HELLO 4").await,
            "-NOPROTO unsupported protocol version"
        );
        let hello = wire.ask("HELLO").await;
        assert!(hello.contains("\"proto\" :2"), "{hello}");
        let refused = wire.ask("AUTH secret").await;
        assert!(
            refused.starts_with("-ERR AUTH <password> called without"),
            "{refused}"
        );
        assert_eq!(wire.ask("AUTH default any").await, "OK");
        assert!(wire.ask("AUTH ann any").await.starts_with("-WRONGPASS"));
        let hello = wire.ask("HELLO 3 AUTH default x SETNAME web").await;
        assert!(
            hello.starts_with('{') && hello.contains("\"role\": \"master\""),
            "{hello}"
        );
        assert_eq!(wire.ask("GET absent").await, "nil");
        assert_eq!(wire.ask("RESET").await, "RESET");
        assert_eq!(wire.ask("CLIENT GETNAME").await, "nil");
        let hello = wire.ask("HELLO 3 WHAT").await;
        assert_eq!(hello, "-ERR Syntax error in HELLO option 'WHAT'");
    });
}
