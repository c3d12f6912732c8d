//! Tells TLS from plaintext by the first byte of a connection, and gives that byte back.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// First byte of every TLS connection: the content type of a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// What the first byte of a connection announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstByte {
    /// A TLS handshake.
    Tls,
    /// Anything else.
    Plaintext,
}

/// A stream whose first byte was looked at and is still there to be read.
#[derive(Debug)]
pub struct Sniffed<S> {
    first: Option<u8>,
    stream: S,
}

/// Waits for the first byte of `stream`. The caller bounds the time.
///
/// A connection that ends before its first byte is an `UnexpectedEof` error.
pub async fn sniff<S>(mut stream: S) -> io::Result<(FirstByte, Sniffed<S>)>
where
    S: AsyncRead + Unpin,
{
    let first = stream.read_u8().await?;
    let kind = if first == TLS_HANDSHAKE {
        FirstByte::Tls
    } else {
        FirstByte::Plaintext
    };
    let first = Some(first);
    Ok((kind, Sniffed { first, stream }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
