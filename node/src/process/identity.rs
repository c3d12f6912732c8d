//! Which process a number stands for. A pid alone may by now belong to a stranger; with its start
//! time it cannot.

use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::files;

/// A process and when it started, in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`.
    pub started: u64,
}

/// A line of `/proc/PID/stat` is a few hundred bytes.
const STAT_BYTES_MAX: u64 = 16 << 10;

impl ProcessIdentity {
    /// This process.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        Self::of(pid)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// The process that now has this number; `None` when there is none, or only the remains of one
    /// (a zombie).
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        let path = format!("/proc/{pid}/stat");
        match files::read(Path::new(&path), STAT_BYTES_MAX) {
            Ok(bytes) => Ok(parse_stat(&String::from_utf8_lossy(&bytes))
                .filter(|(state, _)| *state != 'Z' && *state != 'X')
                .map(|(_, started)| Self { pid, started })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The process ended between opening and reading its file.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the same process still runs.
    pub fn is_alive(self) -> bool {
        matches!(Self::of(self.pid), Ok(Some(now)) if now == self)
    }

    /// Sends a signal if the same process still runs, and says whether it did.
    pub fn signal(self, signal: Signal) -> io::Result<bool> {
        if !self.is_alive() {
            return Ok(false);
        }
        send(self.pid, signal)?;
        Ok(true)
    }
}

/// Sends a signal to a child that was not yet waited for, whose number can therefore not have been
/// given away.
pub(crate) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(rustix::process::kill_process(pid, signal)?)
}

/// Linux counts the times in `/proc` in hundredths of a second on every architecture that Kelp runs
/// on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that this process has used, in user and system mode; 0 when the system does not
/// say.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = files::read(Path::new("/proc/self/stat"), STAT_BYTES_MAX).unwrap_or_default();
    parse_cpu_ticks(&String::from_utf8_lossy(&stat)).map_or(0.0, |ticks| ticks / TICKS_PER_SECOND)
}

/// Fields 14 and 15 of a line of `/proc/PID/stat`, together.
fn parse_cpu_ticks(line: &str) -> Option<f64> {
    let (_, behind_name) = line.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(f64::from(user) + f64::from(system))
}

/// State and start time from a line of `/proc/PID/stat`. The second field, the name, may itself
/// hold blanks and brackets, so counting starts behind its last bracket.
fn parse_stat(line: &str) -> Option<(char, u64)> {
    let (_, behind_name) = line.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3; the start time is field 22, the nineteenth after it.
    let started = fields.nth(18)?.parse().ok()?;
    Some((state, started))
}

#[cfg(test)]
mod tests;
