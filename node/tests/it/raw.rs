//! A client that is not the client library: raw frames over a socket.

use bytes::BytesMut;
use kelp_wire::{
    DecodeResponse, FrameLimits, Hello, ReadOptions, Request, RequestId, Status, decode_response,
    encode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Small, so that the node soon notices that nobody reads.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;

/// One request as bytes.
pub(crate) fn request(id: u32, request: &Request<'_>) -> BytesMut {
    let mut out = BytesMut::new();
    encode_request(&mut out, RequestId::new(id), request).expect("a valid request");
    out
}

/// A hello with id 1.
pub(crate) fn hello() -> BytesMut {
    request(1, &Request::Hello(Hello::default()))
}

/// A get of `key`.
pub(crate) fn get(id: u32, key: &[u8]) -> BytesMut {
    let options = ReadOptions::default();
    let get = Request::Get {
        database: 0,
        key,
        options,
    };
    request(id, &get)
}

/// A response, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawReply {
    pub(crate) id: u32,
    pub(crate) status: Status,
    pub(crate) value: Vec<u8>,
}

impl RawReply {
    /// The text of an error.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.value).into_owned()
    }
}

/// A connection whose bytes the test chooses.
pub(crate) struct RawConnection {
    stream: TcpStream,
    input: BytesMut,
}

impl RawConnection {
    #[expect(
        clippy::disallowed_methods,
        reason = "a raw socket, to send what a client library would not"
    )]
    pub(crate) async fn open(address: &str) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket can be made");
        socket
            .set_recv_buffer_size(RECEIVE_BUFFER_BYTES)
            .expect("the size is allowed");
        let address = address.parse().expect("members have socket addresses here");
        let stream = socket.connect(address).await.expect("the port is open");
        Self {
            stream,
            input: BytesMut::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the node reads");
    }

    /// Sends no more, but goes on reading.
    pub(crate) async fn end_sending(&mut self) {
        self.stream.shutdown().await.expect("the node is there");
    }

    /// The next response; `None` when the node has closed the connection in order.
    pub(crate) async fn next(&mut self) -> Option<RawReply> {
        loop {
            match decode_response(&self.input, &FrameLimits::FULL).expect("a sound frame") {
                DecodeResponse::Frame { consumed, response } => {
                    let reply = RawReply {
                        id: response.id.get(),
                        status: response.status,
                        value: response.value.to_vec(),
                    };
                    let _ = self.input.split_to(consumed);
                    return Some(reply);
                }
                DecodeResponse::Incomplete { .. } => {
                    let read = self.stream.read_buf(&mut self.input).await;
                    if read.expect("an orderly close") == 0 {
                        assert!(self.input.is_empty(), "half a frame at the end");
                        return None;
                    }
                }
            }
        }
    }

    /// All responses until the node closes.
    pub(crate) async fn rest(&mut self) -> Vec<RawReply> {
        let mut replies = Vec::new();
        while let Some(reply) = self.next().await {
            replies.push(reply);
        }
        replies
    }
}

/// The value of a metric of the node whose HTTP port is at `address`.
pub(crate) async fn metric(address: &str, name: &str) -> u64 {
    let mut stream = RawConnection::open(address).await.stream;
    let head = b"GET /metrics HTTP/1.1\r\nHost: kelp\r\nConnection: close\r\n\r\n";
    stream.write_all(head).await.expect("the node reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("a page");
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .and_then(|value| value.parse().ok())
        .expect("the metric is there and a whole number")
}
