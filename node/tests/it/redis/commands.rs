//! Each command and its replies, as Redis gives them.

use super::*;

async fn check(wire: &mut Wire, script: &[(&str, &str)]) {
    for (line, expected) in script {
        assert_eq!(wire.ask(line).await, *expected, "{line}");
    }
}

#[test]
fn values_are_set_read_and_deleted() {
    alone(async |mut wire| {
        let script = [
            ("PING", "PONG"),
            ("PING hi", "\"hi\""),
            ("echo hi", "\"hi\""),
            ("GET a", "nil"),
            ("SET a 1", "OK"),
            ("get a", "\"1\""),
            ("SET a 2 NX", "nil"),
            ("SET b 2 nx", "OK"),
            ("SET c 2 XX", "nil"),
            ("SET a 3 xx", "OK"),
            ("SET a 3 NX XX", "-ERR syntax error"),
            ("SET a 3 WHAT", "-ERR syntax error"),
            ("SET a 3 EX 5", "-ERR the option EX of SET is not supported"),
            ("SETNX a 4", ":0"),
            ("SETNX c 4", ":1"),
            ("MGET a b absent a", "[\"3\" \"2\" nil \"3\"]"),
            ("MSET a 1 d 2 a 7", "OK"),
            ("GET a", "\"7\""),
            (
                "MSET a 1 b",
                "-ERR wrong number of arguments for 'mset' command",
            ),
            ("EXISTS a b a absent", ":3"),
            ("STRLEN a", ":1"),
            ("STRLEN absent", ":0"),
            ("TYPE a", "string"),
            ("TYPE absent", "none"),
            ("APPEND a 89", ":3"),
            ("APPEND new xyz", ":3"),
            ("GET a", "\"789\""),
            ("DBSIZE", ":5"),
            ("DEL a absent", ":1"),
            ("DEL a", ":0"),
            ("UNLINK b c b d", ":3"),
            ("GET", "-ERR wrong number of arguments for 'get' command"),
            ("DBSIZE", ":1"),
        ];
        check(&mut wire, &script).await;
    });
}

#[test]
fn integers_are_added_up_and_refused_in_the_words_of_redis() {
    const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range";
    const OVERFLOW: &str = "-ERR increment or decrement would overflow";
    alone(async |mut wire| {
        let script = [
            ("INCR n", ":1"),
            ("INCRBY n 41", ":42"),
            ("DECR n", ":41"),
            ("DECRBY n 50", ":-9"),
            ("GET n", "\"-9\""),
            ("INCRBY n 9223372036854775807", ":9223372036854775798"),
            ("INCRBY n 10", OVERFLOW),
            ("GET n", "\"9223372036854775798\""),
            ("INCRBY n 1x", NOT_AN_INTEGER),
            ("INCRBY n 9223372036854775808", NOT_AN_INTEGER),
            (
                "DECRBY n -9223372036854775808",
                "-ERR decrement would overflow",
            ),
            ("SET n 1.5", "OK"),
            ("INCR n", NOT_AN_INTEGER),
            ("SET n 012", "OK"),
            ("DECR n", NOT_AN_INTEGER),
            ("APPEND m 1", ":1"),
            ("APPEND m 2", ":2"),
            ("INCR m", ":13"),
        ];
        check(&mut wire, &script).await;
    });
}

#[test]
fn databases_are_apart() {
    alone(async |mut wire| {
        let script = [
            ("SET k 0", "OK"),
            ("SELECT 15", "OK"),
            ("GET k", "nil"),
            ("SET k 15", "OK"),
            ("SELECT 16", "-ERR DB index is out of range"),
            ("SELECT -1", "-ERR DB index is out of range"),
            ("SELECT x", "-ERR value is not an integer or out of range"),
            ("FLUSHDB", "OK"),
            ("DBSIZE", ":0"),
            ("SELECT 0", "OK"),
            ("GET k", "\"0\""),
            ("SELECT 3", "OK"),
            ("SET k 3", "OK"),
            ("FLUSHDB WHAT", "-ERR syntax error"),
            ("FLUSHALL ASYNC", "OK"),
            ("DBSIZE", ":0"),
            ("SELECT 0", "OK"),
            ("DBSIZE", ":0"),
        ];
        check(&mut wire, &script).await;
    });
}

#[test]
fn what_nobody_knows_is_refused_and_the_connection_goes_on() {
    alone(async |mut wire| {
        let script = [
            (
                "NOSUCH a b",
                "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ",
            ),
            (
                "CLIENT KILL x",
                "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.",
            ),
            (
                "CLIENT SETNAME",
                "-ERR wrong number of arguments for 'client|setname' command",
            ),
            ("CLIENT NO-EVICT ON", "OK"),
            ("CLIENT NO-TOUCH maybe", "-ERR syntax error"),
            (
                "CONFIG SET a b",
                "-ERR unknown subcommand 'SET'. Try CONFIG HELP.",
            ),
            ("CONFIG GET nothing", "[]"),
            (
                "CONFIG GET data*s timeout",
                "[\"databases\" \"16\" \"timeout\" \"0\"]",
            ),
            ("COMMAND COUNT", ":30"),
            ("COMMAND INFO nosuch", "[nil]"),
            (
                "COMMAND INFO get",
                "[[\"get\" :2 [readonly fast] :1 :1 :1 [] [] [] []]]",
            ),
            ("SCAN x", "-ERR invalid cursor"),
            ("SCAN 0 COUNT 0", "-ERR syntax error"),
            ("SCAN 0 MATCH", "-ERR syntax error"),
            ("PING", "PONG"),
        ];
        check(&mut wire, &script).await;
        assert_eq!(wire.ask("CLIENT SETNAME web").await, "OK");
        let own = wire.ask("CLIENT INFO").await;
        assert!(own.contains(" name=web "), "{own}");
        assert_eq!(wire.ask("QUIT").await, "OK");
        assert_eq!(wire.next().await, None);
    });
}

#[test]
fn keys_and_values_over_the_limits_are_refused_by_a_reply() {
    alone(async |mut wire| {
        let large = vec![b'v'; 8 << 20];
        wire.send(&wire::encode(&[b"SET", b"k", &large])).await;
        assert_eq!(wire.next().await.as_deref(), Some("OK"));
        assert_eq!(wire.ask("STRLEN k").await, format!(":{}", 8 << 20));
        let larger = [&large[..], b"v"].concat();
        let long = vec![b'k'; (32 << 10) + 1];
        let refused: [&[&[u8]]; 5] = [
            &[b"SET", b"k", &larger],
            &[b"APPEND", b"k", b"v"],
            &[b"SET", &long, b"v"],
            &[b"INCR", b""],
            &[b"MSET", b"a", b"1", b"b", &larger],
        ];
        for words in refused {
            wire.send(&wire::encode(words)).await;
            let reply = wire.next().await.expect("a reply");
            assert!(reply.starts_with("-ERR "), "{reply}");
        }
        let half = &large[..5 << 20];
        wire.send(&wire::encode(&[b"MSET", b"a", half, b"b", half]))
            .await;
        let reply = wire.next().await.expect("a reply");
        assert!(reply.contains("bytes together"), "{reply}");
        assert_eq!(wire.ask("MGET a b").await, "[nil nil]");
        for key in [b"l1", b"l2", b"l3", b"l4"] {
            wire.send(&wire::encode(&[b"SET", key, &large])).await;
            assert_eq!(wire.next().await.as_deref(), Some("OK"));
        }
        let reply = wire.ask("MGET k l1 l2 l3 l4").await;
        assert!(reply.contains("the most for one reply"), "{reply}");
    });
}

#[test]
fn a_refused_transaction_executes_nothing() {
    alone(async |mut wire| {
        for end in ["EXEC", "DISCARD"] {
            assert!(wire.ask("multi").await.starts_with("-ERR transactions"));
            assert!(wire.ask("SET t 1").await.starts_with("-ERR not executed"));
            assert!(wire.ask("NOSUCH").await.starts_with("-ERR not executed"));
            let expected = match end {
                "EXEC" => "-EXECABORT Transaction discarded because of previous errors.",
                _ => "OK",
            };
            assert_eq!(wire.ask(end).await, expected);
            assert_eq!(wire.ask("EXISTS t").await, ":0");
        }
        assert!(wire.ask("MULTI").await.starts_with("-ERR transactions"));
        assert_eq!(wire.ask("RESET").await, "RESET");
        assert_eq!(wire.ask("SET t 1").await, "OK");
        assert!(wire.ask("EXEC").await.starts_with("-ERR unknown command"));
    });
}
