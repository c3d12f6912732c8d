//! One etcd put over gRPC, on a given HTTP/2 connection.
//!
//! The two messages are small and fixed, so they are written by hand: a load generator should cost
//! as little as it can, because it shares the machine with the nodes that it measures.

use anyhow::{Context as _, Result, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;

/// Tags of the fields `key` and `value` of `etcdserverpb.PutRequest`: number << 3 | 2 (bytes).
const KEY_TAG: u8 = 1 << 3 | 2;
const VALUE_TAG: u8 = 2 << 3 | 2;

/// A gRPC frame (flag and length) around a put request.
pub(crate) fn encode(key: &[u8], value: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(key.len() + value.len() + 16);
    message.put_slice(&[0; 5]);
    for (tag, field) in [(KEY_TAG, key), (VALUE_TAG, value)] {
        message.put_u8(tag);
        put_varint(&mut message, field.len());
        message.put_slice(field);
    }
    let length = u32::try_from(message.len() - 5).expect("a put is far below 4 GiB");
    message[1..5].copy_from_slice(&length.to_be_bytes());
    message.freeze()
}

fn put_varint(out: &mut BytesMut, mut number: usize) {
    while number >= 0x80 {
        out.put_u8(u8::try_from(number & 0x7F | 0x80).expect("eight bits"));
        number >>= 7;
    }
    out.put_u8(u8::try_from(number).expect("seven bits"));
}

/// Sends `message` and waits until etcd has answered that it is done.
pub(crate) async fn send(
    connection: SendRequest<Bytes>,
    authority: &str,
    message: Bytes,
) -> Result<()> {
    let request = Request::post(format!("http://{authority}/etcdserverpb.KV/Put"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let mut connection = connection.ready().await?;
    let (response, mut body) = connection.send_request(request, false)?;
    body.send_data(message, true)?;
    let response = response.await?;
    ensure!(
        response.status().is_success(),
        "HTTP status {}",
        response.status()
    );
    let mut reply = response.into_body();
    while let Some(chunk) = reply.data().await {
        reply.flow_control().release_capacity(chunk?.len())?;
    }
    let trailers = reply
        .trailers()
        .await?
        .context("the reply has no trailers")?;
    let status = trailers
        .get("grpc-status")
        .context("the reply has no grpc-status")?;
    ensure!(
        status == "0",
        "grpc-status {status:?}, {:?}",
        trailers.get("grpc-message")
    );
    Ok(())
}

#[cfg(test)]
mod tests;
