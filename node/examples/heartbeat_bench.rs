//! Measures what is done for every frame, datagram and request: parsing headers and telemetry,
//! checking a heartbeat, counting a request. `scripts/bench-heartbeat` runs it.
//!
//! Without arguments it prints nanoseconds of processor time and allocations of each step. With a
//! step and a number of rounds it does only that, so that callgrind can count the instructions of
//! two such runs and their difference be told per round.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use std::hint::black_box;
use std::time::Duration;

use bytes::BytesMut;
use kelp_node::benching::BenchSecret;
use kelp_node::observe::RequestMetrics;
use kelp_wire::{
    ClusterId, DATAGRAM_HEADER_BYTES, Datagram, DatagramHeader, DatagramOpcode, FrameLimits,
    HEADER_BYTES, Heartbeat, HeartbeatEcho, HeartbeatRole, HeartbeatStamp, NodeId, Opcode, Request,
    RequestHeader, RequestId, SealedHeartbeat, Status, Telemetry, WriteOptions, decode_request,
    encode_request,
};
use rustix::time::{ClockId, clock_gettime};

/// Rounds of one measurement.
const ROUNDS: u32 = 200_000;

/// Measurements of which the median is told.
const MEASUREMENTS: usize = 9;

/// What all steps work on.
struct Inputs {
    frame: BytesMut,
    header: [u8; HEADER_BYTES],
    datagram_header: [u8; DATAGRAM_HEADER_BYTES],
    telemetry: &'static [u8],
    heartbeat: BytesMut,
    secret: BenchSecret,
    metrics: RequestMetrics,
}

/// A step, so many times. The loop is inside, so that the compiler sees both.
type Step = fn(&Inputs, u32);

const STEPS: [(&str, Step); 9] = [
    ("nothing", |inputs, rounds| {
        for _ in 0..rounds {
            black_box(inputs);
        }
    }),
    ("frame-header", |inputs, rounds| {
        for _ in 0..rounds {
            black_box(RequestHeader::decode(black_box(&inputs.header)));
        }
    }),
    ("frame", |inputs, rounds| {
        for _ in 0..rounds {
            let _ = black_box(decode_request(black_box(&inputs.frame), &FrameLimits::FULL));
        }
    }),
    ("datagram-header", |inputs, rounds| {
        for _ in 0..rounds {
            black_box(DatagramHeader::decode(black_box(&inputs.datagram_header)));
        }
    }),
    ("telemetry", |inputs, rounds| {
        for _ in 0..rounds {
            if let Ok(datagram) = Datagram::decode(black_box(inputs.telemetry))
                && datagram.opcode == DatagramOpcode::Telemetry
            {
                black_box(Telemetry::decode(&datagram));
            }
        }
    }),
    ("telemetry-pair", |inputs, rounds| {
        for _ in 0..rounds {
            if let Ok(datagram) = Datagram::decode(black_box(inputs.telemetry)) {
                for reading in Telemetry::decode(&datagram).readings() {
                    let _ = black_box(reading);
                }
            }
        }
    }),
    ("heartbeat", |inputs, rounds| {
        for _ in 0..rounds {
            if let Ok(datagram) = Datagram::decode(black_box(&inputs.heartbeat)) {
                let _ = black_box(SealedHeartbeat::decode(&datagram));
            }
        }
    }),
    ("heartbeat-checked", |inputs, rounds| {
        for _ in 0..rounds {
            if let Ok(datagram) = Datagram::decode(black_box(&inputs.heartbeat))
                && let Ok(sealed) = SealedHeartbeat::decode(&datagram)
            {
                black_box(sealed.open(|signed, mac| inputs.secret.verify(signed, mac)));
            }
        }
    }),
    ("observe", |inputs, rounds| {
        for _ in 0..rounds {
            let elapsed = black_box(Duration::from_micros(85));
            let metrics = black_box(&inputs.metrics);
            metrics.request_finished(Opcode::Put, Status::Ok, elapsed);
        }
    }),
];

fn main() {
    let inputs = inputs();
    let mut arguments = std::env::args().skip(1);
    let Some(wanted) = arguments.next() else {
        println!("step ns (fastest..slowest) allocations");
        for (name, step) in STEPS {
            report(name, step, &inputs);
        }
        return;
    };
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
    let step = STEPS.iter().find(|(name, _)| *name == wanted);
    let (Some((_, step)), Some(rounds)) = (step, rounds) else {
        println!("{}", STEPS.map(|(name, _)| name).join(" "));
        return;
    };
    step(&inputs, rounds);
}

fn report(name: &str, step: Step, inputs: &Inputs) {
    let mut times: Vec<f64> = (0..MEASUREMENTS)
        .map(|_| {
            let start = processor_time();
            step(inputs, ROUNDS);
            let spent = processor_time().saturating_sub(start);
            spent.as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let allocations = allocation_counter::measure(|| step(inputs, 1_000)).count_total;
    let [fastest, median, slowest] = [0, MEASUREMENTS / 2, MEASUREMENTS - 1].map(|at| times[at]);
    println!("{name} {median:.2} ({fastest:.2}..{slowest:.2}) {allocations}");
}

/// Time that this thread has had a processor: what else runs on the machine does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn inputs() -> Inputs {
    let mut frame = BytesMut::new();
    let request = Request::Put {
        database: 0,
        key: b"user/000042",
        value: &[7; 100],
        options: WriteOptions::default(),
    };
    encode_request(&mut frame, RequestId::new(1), &request).expect("the request is within limits");
    let secret = BenchSecret::of(&[7; 40]);
    let mut heartbeat = BytesMut::new();
    full_heartbeat(&secret).encode(&mut heartbeat, |bytes| secret.sign(bytes));
    let telemetry = b"\xa1\x05\x00\x10queue.depth=3.25";
    Inputs {
        header: *frame.first_chunk().expect("a frame begins with its header"),
        datagram_header: *telemetry.first_chunk().expect("and so does a datagram"),
        frame,
        telemetry,
        heartbeat,
        secret,
        metrics: RequestMetrics::default(),
    }
}

fn full_heartbeat(secret: &BenchSecret) -> Heartbeat<'static> {
    let stamp = HeartbeatStamp {
        monotonic_nanos: 5_000_000_000,
        wall_millis: 1_767_225_600_000,
    };
    Heartbeat {
        cluster: ClusterId::new([7; 16]),
        group: 0,
        node: NodeId::new(1),
        role: HeartbeatRole::Leader,
        key: secret.id(),
        boot: 1,
        sequence: 1,
        interval_millis: 100,
        sent: stamp,
        term: 1,
        committed: Some(1),
        applied: Some(1),
        sync_age_millis: Some(1),
        sync_p99_micros: Some(1),
        disk_free_bytes: Some(1),
        memory_bytes: Some(1),
        echo: Some(HeartbeatEcho {
            boot: 1,
            sequence: 1,
            sent: stamp,
            received_wall_millis: 1,
            held_nanos: 1,
            received: 100,
            window: 100,
        }),
        software_version: "0.1.0",
    }
}
