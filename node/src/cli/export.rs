//! `kelp export`: writes every record of the cluster to a file or to standard output, page by page.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use indicatif::HumanBytes;
use kelp_client::{Scan, ScanOptions, ScanRange};
use kelp_wire::key_after_prefix;
use tokio::time::Instant;

use super::connection::Target;
use super::import::progress::{Progress, count};
use super::record::{RecordFormat, decode, encode, escape, unescape};
use super::{ClientArgs, Environment, Exit, Failure, client_runtime, console};
use crate::process::files;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportArgs {
    /// The file; standard output when absent or -
    file: Option<PathBuf>,
    /// How to write records [default: jsonl for *.jsonl and *.json, else tsv]
    #[arg(long, value_enum)]
    format: Option<RecordFormat>,
    /// Only keys that begin with this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prefix: Option<OsString>,
    /// Go on with the interrupted export to FILE
    #[arg(long, requires = "file", conflicts_with = "resume_after")]
    resume: bool,
    /// Start behind this key, as an interrupted export to standard output printed it (\t \n \r \\
    /// \xHH)
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    resume_after: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Records come in the order of their keys, in a canonical form: two exports of equal data are
equal byte by byte, and `kelp import` reads them back. The export is read in pages: of records
that change meanwhile it holds some old and some new. FILE appears when it is complete; until
then the records are in FILE.part, and --resume goes on from there.

Examples:
  kelp export backup.tsv
  kelp export --prefix user: --format jsonl | gzip > users.jsonl.gz
  kelp export backup.tsv --resume";

/// What a page may hold: few round trips, and little to lose.
const PAGE_BYTES: u32 = 1 << 20;
/// How much of the end of a part file is searched for its last whole line. Lines are longer only
/// for values of megabytes, after which an export starts anew.
const TAIL_BYTES_MAX: u64 = 64 << 20;

pub(super) fn run(
    args: ExportArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.clone().resolve(above, environment)?;
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map(Path::to_string_lossy).unwrap_or_default();
    let format = args.format.unwrap_or_else(|| RecordFormat::of_name(&name));
    let after = match (&args.resume_after, file) {
        (Some(text), _) => Some(
            unescape(text.as_bytes())
                .map_err(|error| Failure::usage(format!("--resume-after: {error}")))?,
        ),
        (None, Some(file)) if args.resume => last_key(&part_of(file), format)?,
        _ => None,
    };
    let range = range(args.prefix, after.as_deref());
    let destination = Destination::open(file, after.is_some())?;
    client_runtime()?.block_on(export(&target, range, format, destination))
}

/// The records with the prefix that come after a key.
fn range(prefix: Option<OsString>, after: Option<&[u8]>) -> ScanRange {
    use std::os::unix::ffi::OsStringExt;
    let prefix = prefix.map(OsString::into_vec).unwrap_or_default();
    let Some(after) = after else {
        return if prefix.is_empty() {
            ScanRange::All
        } else {
            ScanRange::Prefix(prefix.into())
        };
    };
    // The first key behind another one is that key with a zero byte.
    let start = [after, &[0]].concat();
    ScanRange::Between {
        start: start.into(),
        end: key_after_prefix(&prefix),
    }
}

fn part_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// The key of the last whole line of a part file, which is cut behind it; `None` to start anew.
fn last_key(part: &Path, format: RecordFormat) -> Result<Option<Vec<u8>>, Failure> {
    let broken = |error: io::Error| Failure::file(Exit::Usage, part, &error);
    if !files::exists(part) {
        return Err(Failure::usage(format!(
            "{}: no interrupted export to resume: leave out --resume",
            part.display()
        )));
    }
    let tail = files::read_tail(part, TAIL_BYTES_MAX).map_err(broken)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let whole = tail.get(..end).unwrap_or_default();
    let line = whole.rsplit(|byte| *byte == b'\n').next();
    let record = decode(format, line.unwrap_or_default()).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}: use the --format of the first attempt",
            part.display()
        ))
    })?;
    let torn = u64::try_from(tail.len() - end - 1).expect("a length of memory fits in 64 bits");
    if torn > 0 {
        let length = files::length(part).map_err(broken)?;
        files::cut(part, length - torn).map_err(broken)?;
    }
    Ok(Some(record.key))
}

/// Where an export goes.
enum Destination {
    Output,
    File {
        part: PathBuf,
        file: PathBuf,
        output: File,
    },
}

impl Destination {
    fn open(file: Option<&Path>, resumes: bool) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Ok(Self::Output);
        };
        let part = part_of(file);
        let opened = if resumes {
            files::append(&part)
        } else {
            files::create(&part)
        };
        Ok(Self::File {
            output: opened.map_err(|error| Failure::file(Exit::Usage, &part, &error))?,
            part,
            file: file.to_owned(),
        })
    }

    fn writer(&self) -> Box<dyn Write + '_> {
        match self {
            Self::Output => Box::new(BufWriter::new(io::stdout().lock())),
            Self::File { output, .. } => Box::new(BufWriter::new(output)),
        }
    }

    fn failed(&self, error: &io::Error) -> Failure {
        match self {
            Self::Output => Failure::output(error),
            Self::File { part, .. } => Failure::file(Exit::Refused, part, error),
        }
    }

    /// Makes a complete export appear under its name, and durable.
    fn complete(&self) -> io::Result<()> {
        match self {
            Self::Output => Ok(()),
            Self::File { part, file, output } => {
                output.sync_all()?;
                files::rename(part, file)?;
                files::sync_directory_of(file)
            }
        }
    }

    fn how_to_resume(&self, last: Option<&[u8]>) -> String {
        match (self, last) {
            (_, None) => "nothing was written".to_owned(),
            (Self::File { .. }, Some(_)) => {
                "continue with the same command and --resume".to_owned()
            }
            (Self::Output, Some(key)) => format!("continue with --resume-after '{}'", escape(key)),
        }
    }
}

/// How far an export came.
#[derive(Default)]
struct Done {
    records: u64,
    bytes: u64,
    last: Option<Bytes>,
}

async fn export(
    target: &Target,
    range: ScanRange,
    format: RecordFormat,
    destination: Destination,
) -> Result<Exit, Failure> {
    let client = target.client()?;
    let scan = client.scan(ScanOptions {
        range,
        page_bytes_max: Some(PAGE_BYTES),
        request: target.request_options(),
        ..ScanOptions::default()
    });
    let progress = Progress::bytes(None);
    let started = Instant::now();
    let mut done = Done::default();
    let ended = tokio::select! {
        ended = pages(scan, format, &destination, &progress, &mut done) => ended,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted")),
    };
    progress.finish();
    match ended {
        Ok(()) => {
            destination
                .complete()
                .map_err(|error| destination.failed(&error))?;
            console::message(format!(
                "exported {}, {} in {:.1} s",
                count(done.records),
                HumanBytes(done.bytes),
                started.elapsed().as_secs_f64(),
            ));
            Ok(Exit::Done)
        }
        // Whoever read standard output has seen enough.
        Err(failure) if failure.message.is_empty() => Err(failure),
        Err(failure) => Err(failure.hint(format!(
            "written: {}; {}",
            count(done.records),
            destination.how_to_resume(done.last.as_deref()),
        ))),
    }
}

/// Writes page after page; what `done` says is flushed.
async fn pages(
    mut scan: Scan,
    format: RecordFormat,
    destination: &Destination,
    progress: &Progress,
    done: &mut Done,
) -> Result<(), Failure> {
    let mut lines = Vec::new();
    while let Some(page) = scan
        .next_page()
        .await
        .map_err(|error| Failure::from(&error))?
    {
        lines.clear();
        for record in &page.records {
            encode(format, &record.key, &record.value, &mut lines);
        }
        let mut writer = destination.writer();
        writer
            .write_all(&lines)
            .and_then(|()| writer.flush())
            .map_err(|error| destination.failed(&error))?;
        done.records += u64::try_from(page.records.len()).expect("a length of memory fits");
        done.bytes += u64::try_from(lines.len()).expect("a length of memory fits");
        if let Some(record) = page.records.last() {
            done.last = Some(record.key.clone());
        }
        progress.show(done.bytes, done.records);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
