//! Closing a connection so that the last words arrive.
//!
//! A socket that is closed with unread bytes in it is reset, and a reset may take away what the
//! other side has not read yet. So the node ends its own direction first and reads away what still
//! comes, within bounds.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use kelp_wire::{HEADER_BYTES, MAGIC, RequestHeader, ResponseFields, Status, encode_error};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Time for the other side to read the last words and to close.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);

/// Time for a client that is turned away to send the header of its first frame.
const HEADER_TIME_MAX: Duration = Duration::from_secs(1);

/// Ends the sending direction and waits for the other side to do the same.
pub(crate) async fn part<R, W>(reader: &mut R, writer: &mut W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let farewell = async {
        writer.shutdown().await?;
        tokio::io::copy(reader, &mut tokio::io::sink()).await
    };
    // The connection is dropped next, however this ended.
    let _ = timeout(FAREWELL_TIME_MAX, farewell).await;
}

/// Tells a client that is not served why, in answer to its first frame, and closes.
pub(crate) async fn turn_away<S>(mut stream: S, status: Status, text: &str) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut header = [0; HEADER_BYTES];
    timeout(HEADER_TIME_MAX, stream.read_exact(&mut header)).await??;
    let header = RequestHeader::decode(&header);
    if header.magic != MAGIC {
        return Err(io::Error::other("not the binary protocol"));
    }
    let mut out = BytesMut::new();
    let fields = ResponseFields::default();
    encode_error(&mut out, header.id, header.opcode, status, &fields, text);
    stream.write_all(&out).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    part(&mut reader, &mut writer).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kelp_wire::{
        DecodeResponse, FrameLimits, Hello, Request, RequestId, decode_response, encode_request,
    };

    use super::*;

    #[tokio::test]
    async fn a_client_that_is_turned_away_is_told_why_in_answer_to_its_hello() {
        let (mut near, far) = tokio::io::duplex(4_096);
        let mut hello = BytesMut::new();
        let request = Request::Hello(Hello::default());
        encode_request(&mut hello, RequestId::new(9), &request).unwrap();
        near.write_all(&hello).await.unwrap();
        let away = tokio::spawn(turn_away(far, Status::Overloaded, "come back later"));
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.unwrap();
        drop(near);
        away.await.unwrap().unwrap();
        let decoded = decode_response(&answer, &FrameLimits::FULL).unwrap();
        let DecodeResponse::Frame { consumed, response } = decoded else {
            panic!("half a frame");
        };
        assert_eq!(consumed, answer.len(), "one frame and no more");
        assert_eq!(response.id, RequestId::new(9));
        assert_eq!(response.status, Status::Overloaded);
        assert_eq!(response.value, b"come back later");
    }

    #[tokio::test]
    async fn a_stranger_of_another_protocol_is_told_nothing() {
        let (mut near, far) = tokio::io::duplex(4_096);
        near.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        assert!(turn_away(far, Status::Refused, "no").await.is_err());
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty());
    }
}
