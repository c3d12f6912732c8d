//! A client of a few lines: sends words, reads values.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One connection.
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
}

/// The command as clients send it.
pub(super) fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

impl Wire {
    #[expect(
        clippy::disallowed_methods,
        reason = "a raw socket, as any client in any language opens it"
    )]
    pub(super) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the port is open");
        stream.set_nodelay(true).expect("a socket of our own");
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the node reads");
    }

    /// Sends a command in words and returns its reply as text, see [`Wire::next`].
    pub(super) async fn ask(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send(&encode(&words)).await;
        self.next().await.expect("every command has a reply")
    }

    /// The next reply: `OK`, `-ERR ...`, `:1`, `"bytes"`, `nil`, `[a b]`, `{k: v}`, `(a b)`; `None`
    /// at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self.stream.read_until(b'\n', &mut line).await;
        if read.expect("an orderly close") == 0 {
            return None;
        }
        let line = String::from_utf8(line).expect("lines are text");
        let line = line.strip_suffix("\r\n").expect("lines end in CRLF");
        let (mark, rest) = line.split_at(1);
        Some(match mark {
            "+" => rest.to_owned(),
            "-" | ":" => line.to_owned(),
            "_" => "nil".to_owned(),
            "$" if rest == "-1" => "nil".to_owned(),
            "$" | "=" => {
                let length: usize = rest.parse().expect("a length");
                let mut bytes = vec![0; length + 2];
                let read = self.stream.read_exact(&mut bytes).await;
                read.expect("as many bytes as promised");
                format!("\"{}\"", String::from_utf8_lossy(&bytes[..length]))
            }
            "*" => format!("[{}]", self.several(rest).await.join(" ")),
            "~" => format!("({})", self.several(rest).await.join(" ")),
            "%" => {
                let count: usize = rest.parse().expect("a count");
                let values = self.several(&(count * 2).to_string()).await;
                let pairs: Vec<_> = values
                    .chunks(2)
                    .map(|pair| format!("{}: {}", pair[0], pair[1]))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            _ => panic!("unknown reply {line}"),
        })
    }

    /// All replies until the node closes.
    pub(super) async fn rest(&mut self) -> Vec<String> {
        let mut replies = Vec::new();
        while let Some(reply) = self.next().await {
            replies.push(reply);
        }
        replies
    }

    async fn several(&mut self, count: &str) -> Vec<String> {
        let count: usize = count.parse().expect("a count");
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let value = Box::pin(self.next()).await;
            values.push(value.expect("as many values as promised"));
        }
        values
    }
}
