//! What the comparison is asked for.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

pub(super) const USAGE: &str = "\
usage: scripts/bench-redis [options]
  --clients N        connections [default: 50]
  --pipelines A,B    commands under way on each connection [default: 1,16]
  --requests N       commands of a kind and round at pipeline 1; more in proportion with deeper
                     pipelines [default: 20000]
  --rounds N         rounds, of which the median counts [default: 5]
  --value-bytes N    length of a value [default: 100]
  --keys N           keys that are chosen from [default: 100000]
  --directory DIR    where both keep their data [default: target/bench-redis]
";

/// The options, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) clients: u32,
    pub(super) pipelines: Vec<u32>,
    pub(super) requests: u32,
    pub(super) rounds: usize,
    pub(super) value_bytes: u32,
    pub(super) keys: u32,
    pub(super) directory: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clients: 50,
            pipelines: vec![1, 16],
            requests: 20_000,
            rounds: 5,
            value_bytes: 100,
            keys: 100_000,
            directory: PathBuf::from("target/bench-redis"),
        }
    }
}

impl Options {
    /// The options, or none when help is asked for.
    pub(super) fn read(arguments: &[String]) -> anyhow::Result<Option<Self>> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--help" {
                return Ok(None);
            }
            let value = rest
                .next()
                .with_context(|| format!("{name} wants a value"))?;
            let number = || {
                let number: u32 = value
                    .parse()
                    .with_context(|| format!("{name}: {value} is no number"))?;
                ensure!(number > 0, "{name}: 0 is too little");
                Ok(number)
            };
            match name.as_str() {
                "--clients" => options.clients = number()?,
                "--requests" => options.requests = number()?,
                "--rounds" => options.rounds = usize::try_from(number()?)?,
                "--value-bytes" => options.value_bytes = number()?,
                "--keys" => options.keys = number()?,
                "--directory" => options.directory = PathBuf::from(value),
                "--pipelines" => {
                    let depths: Result<Vec<u32>, _> = value.split(',').map(str::parse).collect();
                    options.pipelines = depths.with_context(|| format!("{name}: {value}"))?;
                    ensure!(!options.pipelines.contains(&0), "{name}: 0 is too little");
                }
                _ => bail!("unknown option {name}\n{USAGE}"),
            }
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Option<Options>> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&arguments)
    }

    #[test]
    fn options_replace_the_defaults() {
        let options = read("--clients 3 --pipelines 4,5").unwrap().unwrap();
        let expected = Options {
            clients: 3,
            pipelines: vec![4, 5],
            ..Options::default()
        };
        assert_eq!(options, expected);
        assert_eq!(read("--help").unwrap(), None);
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in [
            "--clients",
            "--clients x",
            "--rounds 0",
            "--pipelines 0",
            "--what 1",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
