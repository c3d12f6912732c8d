//! Properties of the codec: what is encoded comes back, and no bytes make a decoder panic.

use std::time::Duration;

use bytes::BytesMut;
use kelp_wire::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A request that owns its bytes, because strategies cannot borrow.
#[derive(Clone, Debug)]
struct Parts {
    kind: u8,
    database: u8,
    key: Vec<u8>,
    value: Vec<u8>,
    write: WriteOptions,
    read: ReadOptions,
    limit: Option<u32>,
    bytes: Option<u32>,
    switches: [bool; 4],
    user: String,
    features: u32,
    cluster: Option<ClusterId>,
}

impl Parts {
    fn request(&self) -> Request<'_> {
        let (database, key, value) = (self.database, &self.key[..], &self.value[..]);
        let options = self.write;
        match self.kind {
            0 => Request::Echo { value },
            1 => Request::Put {
                database,
                key,
                value,
                options,
            },
            2 => Request::Get {
                database,
                key,
                options: self.read,
            },
            3 => Request::Delete {
                database,
                key,
                options,
            },
            4 => Request::Scan(self.scan()),
            5 => Request::Hello(Hello {
                version_min: 1,
                version_max: 3,
                features: self.features,
                cluster: self.cluster,
                user: &self.user,
                password: value,
            }),
            _ => Request::Status,
        }
    }

    fn scan(&self) -> Scan<'_> {
        let [reverse, keys_only, has_cursor, is_prefix] = self.switches;
        Scan {
            database: self.database,
            start: if has_cursor && !reverse {
                &[]
            } else {
                &self.key
            },
            bound: match self.value.as_slice() {
                _ if has_cursor && reverse => ScanBound::Unbounded,
                [] => ScanBound::Unbounded,
                prefix if is_prefix => ScanBound::Prefix(prefix),
                end => ScanBound::Before(end),
            },
            cursor: has_cursor.then_some(&self.key),
            limit: self.limit,
            bytes: self.bytes,
            reverse,
            keys_only,
            options: self.read,
        }
    }
}

fn millis() -> impl Strategy<Value = Duration> {
    any::<u32>().prop_map(|ms| Duration::from_millis(u64::from(ms)))
}

fn tokens() -> impl Strategy<Value = SessionToken> {
    any::<(u64, u64, u64)>().prop_map(|(term, index, epoch)| SessionToken { term, index, epoch })
}

fn write_options() -> impl Strategy<Value = WriteOptions> {
    let session = any::<([u8; 16], u64, u64)>().prop_map(|(client, sequence, floor)| Session {
        client: ClientId::new(client),
        sequence,
        floor,
    });
    (option::of(millis()), option::of(session))
        .prop_map(|(deadline, session)| WriteOptions { deadline, session })
}

fn read_options() -> impl Strategy<Value = ReadOptions> {
    let consistency = option::of(millis()).prop_map(|age| match age {
        Some(max_age) => Consistency::Stale { max_age },
        None => Consistency::Linearizable,
    });
    (option::of(millis()), consistency, option::of(tokens())).prop_map(
        |(deadline, consistency, token)| ReadOptions {
            deadline,
            consistency,
            token,
        },
    )
}

fn parts() -> impl Strategy<Value = Parts> {
    let cluster = any::<[u8; 16]>()
        .prop_filter("zeros mean any", |id| *id != [0; 16])
        .prop_map(ClusterId::new);
    (
        (0_u8..7, any::<u8>(), vec(any::<u8>(), 1..64)),
        vec(any::<u8>(), 0..200),
        (write_options(), read_options()),
        (
            any::<Option<u32>>(),
            any::<Option<u32>>(),
            any::<[bool; 4]>(),
        ),
        ("[a-z]{0,20}", any::<u32>(), option::of(cluster)),
    )
        .prop_map(|(head, value, options, page, hello)| Parts {
            kind: head.0,
            database: head.1,
            key: head.2,
            value,
            write: options.0,
            read: options.1,
            limit: page.0,
            bytes: page.1,
            switches: page.2,
            user: hello.0,
            features: hello.1,
            cluster: hello.2,
        })
}

proptest! {
    #[test]
    fn requests_come_back(parts in parts(), number: u32) {
        let request = parts.request();
        let mut bytes = BytesMut::new();
        encode_request(&mut bytes, RequestId::new(number), &request).unwrap();
        let decoded = decode_request(&bytes, &FrameLimits::FULL).unwrap();
        prop_assert_eq!(decoded, Decode::Frame {
            consumed: bytes.len(),
            id: RequestId::new(number),
            opcode: request.opcode().to_byte(),
            request: Ok(request),
        });
    }

    #[test]
    fn responses_come_back(
        number: u32,
        status in proptest::sample::select(&Status::ALL[..]),
        opcode in proptest::sample::select(&Opcode::ALL[..]),
        more: bool,
        revision: Option<u64>,
        leader in option::of((any::<u16>(), "[a-z.]{1,40}:[0-9]{1,5}")),
        retry_after in option::of(millis()),
        token in option::of(tokens()),
        key in vec(any::<u8>(), 0..64),
        value in vec(any::<u8>(), 0..200),
    ) {
        let response = Response {
            more,
            fields: ResponseFields {
                revision: revision.map(Revision::new),
                leader: leader.as_ref().map(|(node, address)| LeaderHint {
                    node: NodeId::new(*node),
                    address,
                }),
                retry_after,
                token,
            },
            key: &key,
            value: &value,
            ..Response::new(RequestId::new(number), opcode, status)
        };
        let mut bytes = BytesMut::new();
        encode_response(&mut bytes, &response);
        let decoded = decode_response(&bytes, &FrameLimits::FULL).unwrap();
        let consumed = bytes.len();
        prop_assert_eq!(decoded, DecodeResponse::Frame { consumed, response });
    }

    #[test]
    fn scan_entries_come_back(
        entries in vec((vec(any::<u8>(), 1..40), vec(any::<u8>(), 0..40), any::<u64>()), 0..20),
    ) {
        let mut page = BytesMut::new();
        for (key, value, revision) in &entries {
            let entry = ScanEntry { key, value, revision: Revision::new(*revision) };
            let before = page.len();
            entry.encode(&mut page);
            prop_assert_eq!(page.len() - before, entry.encoded_bytes());
        }
        let decoded: Vec<_> = ScanEntries::new(&page)
            .map(|entry| entry.map(|e| (e.key.to_vec(), e.value.to_vec(), e.revision.get())))
            .collect::<Result<_, _>>()
            .unwrap();
        prop_assert_eq!(decoded, entries);
    }

    #[test]
    fn hello_replies_come_back_also_with_newer_bytes(
        version: u8, features: u32, cluster: [u8; 16], node: u16, newer in vec(any::<u8>(), 0..9),
    ) {
        let reply = HelloReply {
            version,
            features,
            cluster: ClusterId::new(cluster),
            node: NodeId::new(node),
        };
        let bytes = [&reply.encode()[..], &newer].concat();
        prop_assert_eq!(HelloReply::decode(&bytes), Ok(reply));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        decode_everything(&bytes);
    }

    #[test]
    fn arbitrary_bodies_never_panic(
        opcode: u8, status in 0_u8..60, flags in 0_u8..3, key_bytes in 0_u8..40,
        extra in vec(any::<u8>(), 0..80), rest in vec(any::<u8>(), 0..200),
    ) {
        let extra_bytes = u8::try_from(extra.len()).unwrap();
        let value_bytes = u8::try_from(rest.len().saturating_sub(usize::from(key_bytes))).unwrap();
        let head = [
            MAGIC, opcode, status, flags, 0, 0, 0, 1, 0, key_bytes, 0, extra_bytes, 0, 0, 0,
            value_bytes,
        ];
        let mut bytes = [&head[..], &extra, &rest].concat();
        decode_everything(&bytes);
        bytes[2] = 0;
        bytes[3] = 0;
        decode_everything(&bytes);
    }

    #[test]
    fn damaged_requests_never_panic(parts in parts(), position: usize, byte: u8) {
        let mut bytes = BytesMut::new();
        encode_request(&mut bytes, RequestId::new(1), &parts.request()).unwrap();
        let position = position % bytes.len();
        bytes[position] = byte;
        decode_everything(&bytes);
    }
}

/// Calls every decoder; whatever it says is right, as long as it says it.
fn decode_everything(bytes: &[u8]) {
    for limits in [FrameLimits::FULL, FrameLimits::BEFORE_HELLO] {
        match decode_request(bytes, &limits) {
            Ok(Decode::Frame { consumed, .. }) => assert!(consumed <= bytes.len()),
            Ok(Decode::Incomplete { needed }) => {
                assert!(needed > bytes.len() && needed <= limits.frame_bytes_max);
            }
            Err(error) => error.encode(&mut BytesMut::new()),
        }
        match decode_response(bytes, &limits) {
            Ok(DecodeResponse::Frame { consumed, .. }) => assert!(consumed <= bytes.len()),
            Ok(DecodeResponse::Incomplete { needed }) => {
                assert!(needed > bytes.len() && needed <= limits.frame_bytes_max);
            }
            Err(error) => drop(error.to_string()),
        }
    }
    let read: usize = ScanEntries::new(bytes)
        .filter_map(Result::ok)
        .map(|entry| entry.encoded_bytes())
        .sum();
    assert!(read <= bytes.len());
    drop(HelloReply::decode(bytes));
}
