//! Where log lines go: to standard error, for people or as JSON.
//!
//! Standard output stays free for what a command was asked for. The filter is the usual one of
//! `tracing-subscriber`, given by `KELP_LOG`: `info`, `kelp_node::peer=debug,warn`. User keys and
//! values appear only at TRACE, which no default enables.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The environment variable that holds the filter.
pub const FILTER_VARIABLE: &str = "KELP_LOG";

/// The filter when none is given.
pub const FILTER_DEFAULT: &str = "info";

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text, coloured on a terminal.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// Why logs could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogsError {
    /// The filter does not parse.
    #[error("log filter {filter:?} is invalid")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Logs of this process were set up before.
    #[error("logs are set up already")]
    Twice,
}

/// Sends the log lines of the whole process to standard error. An empty `filter` means
/// [`FILTER_DEFAULT`].
pub fn init(format: LogFormat, filter: &str) -> Result<(), LogsError> {
    let filter = parse_filter(filter)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A line that cannot be written is lost; to complain about it on standard error would end
        // the process when that is what cannot be written.
        .log_internal_errors(false)
        .with_ansi(format == LogFormat::Human && std::io::stderr().is_terminal());
    let set = match format {
        LogFormat::Human => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    set.map_err(|_| LogsError::Twice)
}

/// Checks a filter without setting anything up.
pub fn check_filter(filter: &str) -> Result<(), LogsError> {
    parse_filter(filter).map(drop)
}

fn parse_filter(filter: &str) -> Result<EnvFilter, LogsError> {
    let filter = match filter {
        "" => FILTER_DEFAULT,
        filter => filter,
    };
    let parse = |text: &str| {
        let parsed = EnvFilter::builder().parse(text);
        parsed.map_err(|source| LogsError::Filter {
            filter: filter.to_owned(),
            source,
        })
    };
    let parsed = parse(filter)?;
    // The consensus library tells every step at INFO; who wants that names it.
    let loud = parsed.max_level_hint() > Some(LevelFilter::WARN);
    if loud && !filter.contains("openraft") {
        return parse(&format!("openraft=warn,{filter}"));
    }
    Ok(parsed)
}
