//! Measures what the client itself can carry: `cargo run --release --example call_rate`.
//!
//! One thread drives 8 connections with 32 calls outstanding on each, over loopback, against a
//! node in another thread that answers every request at once. Prints calls per second; nothing is
//! asserted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use kelp_client::{BoxStream, Connection, ConnectionOptions, TokioTransport, Transport};
use kelp_wire::{
    ClusterId, Decode, FrameLimits, HELLO_VERSION, HelloReply, NodeId, Opcode, Request, Response,
    ResponseFields, Revision, Status, WriteOptions, decode_request, encode_response,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

const CONNECTIONS: usize = 8;
const OUTSTANDING: usize = 32;
const CALLS: usize = 30_000;

#[expect(clippy::print_stdout, reason = "the result of the program")]
#[expect(
    clippy::disallowed_methods,
    reason = "the two sides need a thread each"
)]
fn main() -> io::Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || runtime().block_on(serve(&sender)));
    let address = receiver.recv().map_err(io::Error::other)?;
    let rate = runtime().block_on(drive(address))?;
    println!("{rate:.0} calls/s");
    Ok(())
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives an event queue")
}

async fn serve(address: &std::sync::mpsc::Sender<SocketAddr>) -> io::Result<()> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TokioTransport.listen(any).await?;
    address
        .send(listener.local_addr()?)
        .map_err(io::Error::other)?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer_all(stream));
    }
}

async fn answer_all(mut stream: BoxStream) -> io::Result<()> {
    let (mut incoming, mut outgoing) = (BytesMut::new(), BytesMut::new());
    loop {
        incoming.reserve(64 * 1024);
        if stream.read_buf(&mut incoming).await? == 0 {
            return Ok(());
        }
        while answer_one(&mut incoming, &mut outgoing)? {}
        stream.write_all(&outgoing).await?;
        outgoing.clear();
    }
}

fn answer_one(incoming: &mut BytesMut, outgoing: &mut BytesMut) -> io::Result<bool> {
    let decoded = decode_request(incoming, &FrameLimits::FULL).map_err(io::Error::other)?;
    let Decode::Frame {
        consumed,
        id,
        request,
        ..
    } = decoded
    else {
        return Ok(false);
    };
    let opcode = request.map_err(io::Error::other)?.opcode();
    let hello = HelloReply {
        version: HELLO_VERSION,
        features: 0,
        cluster: ClusterId::new([1; 16]),
        node: NodeId::new(1),
    };
    let response = Response {
        fields: ResponseFields::with_revision(Revision::new(65_536)),
        value: if opcode == Opcode::Hello {
            &hello.encode()
        } else {
            &[]
        },
        ..Response::new(id, opcode, Status::Ok)
    };
    encode_response(outgoing, &response);
    incoming.advance(consumed);
    Ok(true)
}

async fn drive(address: SocketAddr) -> io::Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let deadline = Instant::now() + Duration::from_secs(1);
        let options = ConnectionOptions::default();
        let connection =
            Connection::open(&TokioTransport, &address.to_string(), &options, deadline)
                .await
                .map_err(io::Error::other)?;
        connections.push(Arc::new(connection));
    }
    let start = Instant::now();
    let tasks: Vec<_> = connections
        .iter()
        .flat_map(|connection| std::iter::repeat_n(connection, OUTSTANDING))
        .map(|connection| tokio::spawn(call_often(Arc::clone(connection))))
        .collect();
    for task in tasks {
        task.await.map_err(io::Error::other)??;
    }
    let calls = u32::try_from(CONNECTIONS * OUTSTANDING * CALLS).unwrap_or(u32::MAX);
    Ok(f64::from(calls) / start.elapsed().as_secs_f64())
}

async fn call_often(connection: Arc<Connection>) -> io::Result<()> {
    let request = Request::Put {
        database: 0,
        key: b"user/000042",
        value: &[7; 100],
        options: WriteOptions::default(),
    };
    for _ in 0..CALLS {
        let deadline = Instant::now() + Duration::from_secs(5);
        connection
            .call(&request, deadline)
            .await
            .map_err(io::Error::other)?;
    }
    Ok(())
}
