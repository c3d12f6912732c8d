//! Several append requests on their way at once, their replies in order.
//!
//! ```text
//! requests -> [window: at most 64 requests and 16 MiB] -> bus
//! replies  <- the oldest request's reply, then the next
//! ```
//!
//! A conflict, a higher vote, a partial success or a failed call ends the stream, as openraft
//! asks: what was sent behind it is void and is sent again by the next stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, Stream, StreamExt};
use openraft::RPCTypes;
use openraft::errors::{NetworkError, RPCError};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, StreamAppendResult};

use super::Client;
use crate::links::CallError;
use crate::message::{self, RaftKind};
use crate::type_config::{LogId, TypeConfig};

/// Requests on their way to one peer; openraft's own receiving side holds as many.
const WINDOW_REQUESTS_MAX: usize = 64;

/// Bytes on their way to one peer; a few round trips of a fast link.
const WINDOW_BYTES_MAX: usize = 16 << 20;

type AppendResult = Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>;

/// A request on its way: what it covers, its size and the reply to come.
struct Sent {
    previous: Option<LogId>,
    last: Option<LogId>,
    bytes: usize,
    reply: Result<Bytes, CallError>,
}

/// The stream of replies to a stream of append requests.
pub(super) struct Pipeline<'a, S> {
    client: &'a Client,
    input: S,
    input_ended: bool,
    ended: bool,
    in_flight: FuturesOrdered<BoxFuture<'static, Sent>>,
    in_flight_bytes: usize,
}

impl<'a, S> Pipeline<'a, S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin,
{
    pub(super) fn new(client: &'a Client, input: S) -> Self {
        Self {
            client,
            input,
            input_ended: false,
            ended: false,
            in_flight: FuturesOrdered::new(),
            in_flight_bytes: 0,
        }
    }

    /// Sends requests while there are some and the window has room.
    fn fill(&mut self, context: &mut Context<'_>) {
        while !self.input_ended
            && self.in_flight.len() < WINDOW_REQUESTS_MAX
            && self.in_flight_bytes < WINDOW_BYTES_MAX
        {
            match self.input.poll_next_unpin(context) {
                Poll::Ready(Some(request)) => self.send(&request),
                Poll::Ready(None) => self.input_ended = true,
                Poll::Pending => return,
            }
        }
    }

    fn send(&mut self, request: &AppendEntriesRequest<TypeConfig>) {
        let links = &self.client.links;
        let encoded = message::encode_append(links.group, request);
        let bytes = encoded.len();
        self.in_flight_bytes += bytes;
        let previous = request.prev_log_id;
        let last = request
            .entries
            .last()
            .map(|entry| entry.log_id)
            .or(previous);
        let deadline = self.client.append_deadline(self.in_flight_bytes);
        let (target, class) = (self.client.target, self.client.append_class);
        let call = links.call(target, class, RaftKind::Append, encoded, deadline);
        let sent = call.map(move |reply| Sent {
            previous,
            last,
            bytes,
            reply,
        });
        self.in_flight.push_back(sent.boxed());
    }

    /// Turns a reply into what openraft expects, and ends the stream unless all was accepted.
    fn receive(&mut self, sent: Sent) -> AppendResult {
        self.in_flight_bytes -= sent.bytes;
        let result = self.interpret(sent);
        match &result {
            Ok((Ok(_), Whole::Yes)) => {}
            _ => self.ended = true,
        }
        result.map(|(result, _)| result)
    }

    fn interpret(
        &self,
        sent: Sent,
    ) -> Result<(StreamAppendResult<TypeConfig>, Whole), RPCError<TypeConfig>> {
        let body = sent.reply.map_err(|error| {
            let deadline = self.client.append_deadline(sent.bytes);
            let action = RPCTypes::AppendEntries;
            self.client
                .links
                .rpc_error(error, self.client.target, action, deadline)
        })?;
        let reply = message::decode_append_reply(body)
            .map_err(|error| RPCError::Network(NetworkError::new(&error)))?;
        let whole = match &reply {
            AppendEntriesResponse::PartialSuccess(matching) if *matching != sent.last => Whole::No,
            _ => Whole::Yes,
        };
        if matches!(reply, AppendEntriesResponse::Conflict) && sent.previous.is_none() {
            let error = NetworkError::from_string("conflict before the first entry");
            return Err(RPCError::Network(error));
        }
        Ok((reply.into_stream_result(sent.previous, sent.last), whole))
    }
}

/// Whether a reply covers all entries of its request.
#[derive(PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

impl<S> Stream for Pipeline<'_, S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin,
{
    type Item = AppendResult;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<AppendResult>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.fill(context);
        match self.in_flight.poll_next_unpin(context) {
            Poll::Ready(Some(sent)) => Poll::Ready(Some(self.receive(sent))),
            Poll::Ready(None) if self.input_ended => Poll::Ready(None),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}
