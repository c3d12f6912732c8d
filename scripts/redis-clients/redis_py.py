"""Uses redis-py as its users do, through the node at each port that is given."""

import sys

import redis


def check(found, expected, what):
    if found != expected:
        sys.exit(f"redis-py: {what} gave {found!r}, expected {expected!r}")


def text(found):
    """Which of the two a reply is depends on the version of the protocol."""
    return found.decode() if isinstance(found, bytes) else found


def refused(call, part, what):
    try:
        found = call()
    except redis.ResponseError as error:
        if part not in str(error):
            sys.exit(f"redis-py: {what} was refused with {error!r}")
    else:
        sys.exit(f"redis-py: {what} gave {found!r}, expected an error")


def strings(client):
    check(client.flushdb(), True, "flushdb")
    check(client.set("k", b"\x00\xff"), True, "set")
    check(client.get("k"), b"\x00\xff", "get")
    check(client.get("absent"), None, "get of an absent key")
    check(client.set("k", "v", nx=True), None, "set nx")
    check(client.set("k", "v", xx=True), True, "set xx")
    check(client.setnx("k", "w"), False, "setnx")
    check(client.append("k", "w"), 2, "append")
    check(client.strlen("k"), 2, "strlen")
    check(client.type("k"), b"string", "type")
    check(client.incr("n", 5), 5, "incr")
    check(client.decr("n", 7), -2, "decr")
    refused(lambda: client.incr("k"), "not an integer", "incr of text")
    refused(lambda: client.set("k", "v", ex=5), "not supported", "set ex")
    check(client.mset({"a": 1, "b": 2}), True, "mset")
    check(client.mget("a", "absent", "b"), [b"1", None, b"2"], "mget")
    check(client.exists("a", "b", "absent"), 2, "exists")
    check(client.delete("a", "absent"), 1, "delete")
    check(client.dbsize(), 3, "dbsize")


def pipelines(client):
    pipe = client.pipeline(transaction=False)
    for number in range(500):
        pipe.set(f"pipe:{number}", number).incr("counter").get(f"pipe:{number}")
    expected = []
    for number in range(500):
        expected += [True, number + 1, str(number).encode()]
    check(pipe.execute(), expected, "a pipeline")
    found = sorted(client.scan_iter(match="pipe:*", count=70))
    check(found, sorted(f"pipe:{number}".encode() for number in range(500)), "scan_iter")


def main():
    for port in map(int, sys.argv[1:]):
        for protocol in (2, 3):
            client = redis.Redis(port=port, protocol=protocol, db=protocol, client_name="check")
            check(client.ping(), True, "ping")
            strings(client)
            pipelines(client)
            check(text(client.client_getname()), "check", "client_getname")
            check(client.info("persistence")["loading"], 0, "info")
            found = {text(key): text(value) for key, value in client.config_get("databases").items()}
            check(found, {"databases": "16"}, "config_get")
            if client.command_count() < 20:
                sys.exit("redis-py: too few commands")
            client.close()
        print(f"redis-py {redis.__version__}: passed on port {port}")


main()
