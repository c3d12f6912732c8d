//! The figures of all rounds, and the table that is made of them.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A kind of command at a depth of pipelines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pipeline: u32,
    command: String,
}

impl Kind {
    /// From the name that `redis-benchmark` gives, as in `MSET (10 keys)`.
    pub(super) fn new(name: &str, pipeline: u32) -> Self {
        let command = name.split_whitespace().next().unwrap_or(name);
        Self {
            pipeline,
            command: command.to_ascii_lowercase(),
        }
    }
}

/// Commands per second, by kind, of Kelp and of Redis.
#[derive(Debug, Default)]
pub(super) struct Figures {
    rates: BTreeMap<Kind, [Vec<f64>; 2]>,
}

impl Figures {
    /// Adds the figure of one round; place 0 is Kelp's, 1 that of Redis.
    pub(super) fn add(&mut self, kind: Kind, place: usize, rate: f64) {
        self.rates.entry(kind).or_default()[place].push(rate);
    }

    /// The medians side by side, and a line `ratio N` for each kind.
    pub(super) fn table(&mut self) -> String {
        let mut table = String::from("pipeline  command      kelp/s     redis/s     ratio\n");
        let mut ratios = String::new();
        for (kind, [kelp, redis]) in &mut self.rates {
            let (kelp, redis) = (median(kelp), median(redis));
            let ratio = kelp / redis;
            let Kind { pipeline, command } = kind;
            writeln!(
                table,
                "{pipeline:>8}  {command:<8} {kelp:>10.0}  {redis:>10.0}  {ratio:>8.2}"
            )
            .expect("strings take all writes");
            writeln!(ratios, "ratio {ratio:.3} {command} pipeline {pipeline}")
                .expect("strings take all writes");
        }
        table + &ratios
    }
}

/// The middle of the figures; of an even number the lower one of the two.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures
        .get(figures.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

/// The names and rates in what `redis-benchmark --csv` prints.
pub(super) fn parse(csv: &str) -> Vec<(String, f64)> {
    let field = |text: &str| text.trim_matches('"').to_owned();
    csv.lines()
        .filter_map(|line| {
            let mut fields = line.split("\",\"");
            let name = field(fields.next()?);
            let rate = field(fields.next()?).parse().ok()?;
            Some((name, rate))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_the_lines_below_the_head() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"1234.50\",\"0.1\"\n\
                   \"MSET (10 keys)\",\"99.00\",\"0.2\"\n";
        let expected = [
            ("SET".to_owned(), 1234.5),
            ("MSET (10 keys)".to_owned(), 99.0),
        ];
        assert_eq!(parse(csv), expected);
    }

    #[test]
    fn the_table_compares_medians() {
        let mut figures = Figures::default();
        for rate in [1.0, 300.0, 200.0] {
            figures.add(Kind::new("SET", 1), 0, rate);
        }
        for rate in [100.0, 100.0, 7.0] {
            figures.add(Kind::new("SET", 1), 1, rate);
        }
        let table = figures.table();
        assert!(table.ends_with("ratio 2.000 set pipeline 1\n"), "{table}");
    }
}
