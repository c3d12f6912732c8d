//! The real transport, over the loopback interface.

use kelp_client::{TokioTransport, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn streams_carry_bytes_both_ways() {
    let transport = TokioTransport;
    let listener = transport
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (near, far) = tokio::join!(transport.connect(&address), listener.accept());
    let (mut near, (mut far, _)) = (near.unwrap(), far.unwrap());
    near.write_all(b"ping").await.unwrap();
    let mut buffer = [0; 4];
    far.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"ping");
    far.write_all(b"pong").await.unwrap();
    near.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"pong");
}

#[tokio::test]
async fn datagrams_arrive() {
    let transport = TokioTransport;
    let any = "127.0.0.1:0".parse().unwrap();
    let near = transport.bind_datagrams(any).await.unwrap();
    let far = transport.bind_datagrams(any).await.unwrap();
    near.try_send_to(b"beat", far.local_addr().unwrap())
        .unwrap();
    let mut buffer = [0; 16];
    let (bytes, from) = far.receive_from(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..bytes], b"beat");
    assert_eq!(from, near.local_addr().unwrap());
}

#[tokio::test]
async fn names_are_resolved() {
    let addresses = TokioTransport.resolve("localhost:4800").await.unwrap();
    assert!(addresses.iter().all(|address| address.port() == 4800));
}
