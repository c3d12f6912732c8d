//! From a decoded request to a job: greetings, refusals at the door, and what is asked of whom.

use std::time::Duration;

use bytes::Bytes;
use kelp_raft::{CommandHead, OperationRef};
use kelp_wire::{
    Consistency, Hello, Opcode, ReadOptions, Request, RequestError, RequestId, ResponseFields,
    Status, WriteOptions, encode_error,
};

use super::{RequestMark, Session};
use crate::client_port::answer;
use crate::client_port::connection::{Dialogue, Flow};
use crate::client_port::read::{Read, ScanJob};

/// Deadline of a request that names none.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);

/// Longest deadline a request can ask for, so that nothing waits for ever.
const DEADLINE_MAX: Duration = Duration::from_mins(1);

impl Session {
    /// Takes one well-framed request of `bytes` length.
    pub(super) fn request(
        &mut self,
        id: RequestId,
        opcode: u8,
        bytes: usize,
        request: Result<Request<'_>, RequestError>,
    ) -> Flow {
        let is_early = !self.is_greeted() && opcode != Opcode::Hello.to_byte();
        let request = match request {
            Ok(request) if !is_early => request,
            Err(error) if !is_early => {
                self.fault(id, opcode, error.status(), &error.to_string());
                return self.flow_after_fault();
            }
            _ => {
                let text = "the first frame must be hello (opcode 0x08)";
                self.fault(id, opcode, Status::Refused, text);
                return Flow::Close;
            }
        };
        let started = self.port.clock.monotonic();
        let mark = RequestMark {
            id,
            opcode: request.opcode(),
            started,
            bytes,
        };
        self.holdings.in_flight_bytes += bytes;
        if let Request::Hello(hello) = request {
            return self.hello(mark, &hello);
        }
        self.dispatch(mark, request);
        Flow::Continue
    }

    /// Answers a frame that is no request.
    fn fault(&mut self, id: RequestId, opcode: u8, status: Status, text: &str) {
        self.port.metrics.refused(status);
        let fields = ResponseFields::default();
        encode_error(
            &mut self.holdings.output.bytes,
            id,
            opcode,
            status,
            &fields,
            text,
        );
    }

    /// A stranger whose hello is malformed has no business here.
    fn flow_after_fault(&self) -> Flow {
        if self.is_greeted() {
            Flow::Continue
        } else {
            Flow::Close
        }
    }

    fn dispatch(&mut self, mark: RequestMark, request: Request<'_>) {
        match request {
            Request::Echo { value } => {
                if value.is_empty() || self.admits(mark) {
                    self.answer(mark, value);
                }
            }
            Request::Put {
                database,
                key,
                value,
                options,
            } => {
                let operation = OperationRef::Put { key, value };
                self.write(mark, database, operation, &options);
            }
            Request::Delete {
                database,
                key,
                options,
            } => {
                self.write(mark, database, OperationRef::Delete { key }, &options);
            }
            Request::Get {
                database,
                key,
                options,
            } => {
                let read = Read::Get {
                    database,
                    key: Bytes::copy_from_slice(key),
                };
                self.read(mark, read, options);
            }
            Request::Scan(scan) => match ScanJob::new(&scan) {
                Ok(job) => self.read(mark, Read::Scan(job), scan.options),
                Err(text) => self.refuse(mark, Status::BadRequest, text),
            },
            Request::Status => {
                let report = self.port.view.status_json();
                self.answer(mark, &report);
            }
            Request::Hello(_) => {}
        }
    }

    fn hello(&mut self, mark: RequestMark, hello: &Hello<'_>) -> Flow {
        let reply = answer::hello_reply(&self.port);
        if !hello.version_matches() {
            self.refuse(
                mark,
                Status::Unsupported,
                "no common protocol version; this node speaks 1",
            );
            return Flow::Close;
        }
        if hello
            .cluster
            .is_some_and(|cluster| cluster != reply.cluster)
        {
            let text = format!("this node belongs to cluster {}", reply.cluster);
            self.refuse(mark, Status::WrongCluster, &text);
            return Flow::Close;
        }
        if !hello.user.is_empty() {
            self.refuse(
                mark,
                Status::Refused,
                "this cluster has no users; connect without a login",
            );
            return Flow::Close;
        }
        if self.seat.is_none() {
            self.seat = self.port.seats.seat();
        }
        if self.seat.is_none() {
            let count_max = self.port.seats.client_count_max();
            let text = format!("this node has {count_max} clients, its most; try another node");
            self.refuse(mark, Status::Overloaded, &text);
            return Flow::Close;
        }
        self.answer(mark, &reply.encode());
        Flow::Continue
    }

    /// False when the node holds too much already; the request is refused then.
    fn admits(&mut self, mark: RequestMark) -> bool {
        let has_room = self.holdings.has_room();
        if !has_room {
            let text = "this node holds too many bytes of requests and replies; try again";
            self.refuse(mark, Status::Overloaded, text);
        }
        has_room
    }

    fn write(
        &mut self,
        mark: RequestMark,
        database: u8,
        operation: OperationRef<'_>,
        options: &WriteOptions,
    ) {
        if options.session.is_some() {
            let text = "client sessions are not supported yet";
            return self.refuse(mark, Status::Unsupported, text);
        }
        if !self.admits(mark) {
            return;
        }
        let deadline = mark.started + deadline_of(options.deadline);
        let head = CommandHead::new(operation.opcode(), database);
        self.lane.write(mark, deadline, |buffer| {
            head.encode_into(operation.body_bytes(), buffer);
            operation.encode_body_into(buffer);
        });
    }

    fn read(&mut self, mark: RequestMark, read: Read, options: ReadOptions) {
        if options.consistency != Consistency::Linearizable {
            let text = "stale reads are not supported yet";
            return self.refuse(mark, Status::Unsupported, text);
        }
        if !self.admits(mark) {
            return;
        }
        let deadline = mark.started + deadline_of(options.deadline);
        self.lane.read(mark, deadline, read);
    }
}

fn deadline_of(asked: Option<Duration>) -> Duration {
    asked.unwrap_or(DEADLINE_DEFAULT).min(DEADLINE_MAX)
}
