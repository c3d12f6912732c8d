//! What is printed for people and for scripts.

use std::time::Duration;

use crate::Shape;
use crate::load::Outcome;

/// Who was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Etcd,
    Kelp,
}

/// One measurement.
pub(crate) struct Round {
    pub(crate) system: System,
    pub(crate) outcome: Outcome,
    /// CPU time of the three nodes together.
    pub(crate) nodes_cpu: Duration,
}

/// Prints every round, the mean of each system and a line `ratio N`.
pub(crate) fn print(outstanding: usize, shape: Shape, rounds: &[Round]) {
    println!(
        "{outstanding} puts outstanding over {} connections, {} bytes each, {} s a round",
        shape.connections, shape.value_bytes, shape.seconds
    );
    println!("system  writes/s  p50 us  p99 us  max us  nodes cpu s  load cpu s  cpu us/write");
    for round in rounds {
        print_round(round);
    }
    let etcd = mean(rounds, System::Etcd);
    let kelp = mean(rounds, System::Kelp);
    println!("etcd {etcd:.0} writes/s, kelp {kelp:.0} writes/s");
    println!("ratio {:.2}", kelp / etcd);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a figure for people needs no more than 53 bits"
)]
fn print_round(
    Round {
        system,
        outcome,
        nodes_cpu,
    }: &Round,
) {
    let name = match system {
        System::Etcd => "etcd",
        System::Kelp => "kelp",
    };
    let cpu = (*nodes_cpu + outcome.cpu).as_secs_f64() * 1e6 / outcome.operations.max(1) as f64;
    println!(
        "{name:<6} {:>9.0} {:>7.0} {:>7.0} {:>7.0} {:>12.2} {:>11.2} {cpu:>13.1}",
        outcome.operations_per_second(),
        outcome.p50,
        outcome.p99,
        outcome.max,
        nodes_cpu.as_secs_f64(),
        outcome.cpu.as_secs_f64(),
    );
}

/// Writes per second over all rounds of `system` together.
#[expect(
    clippy::cast_precision_loss,
    reason = "a rate for people needs no more than 53 bits"
)]
fn mean(rounds: &[Round], system: System) -> f64 {
    let own = || {
        rounds
            .iter()
            .filter(|round| round.system == system)
            .map(|round| &round.outcome)
    };
    let operations: u64 = own().map(|outcome| outcome.operations).sum();
    let elapsed: Duration = own().map(|outcome| outcome.elapsed).sum();
    operations as f64 / elapsed.as_secs_f64()
}
