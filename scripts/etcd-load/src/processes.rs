//! Child processes that end with their owner, and what they cost.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Ticks per second in `/proc/PID/stat`; Linux has promised 100 to programs for ever.
const TICKS_PER_SECOND: u64 = 100;

/// A child process; dropping it asks it to end and waits until it has.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended already cannot be asked; it is waited for all the same.
        let _ = Command::new("kill")
            .arg(self.id().to_string())
            .stderr(Stdio::null())
            .status();
        let _ = self.0.wait();
    }
}

/// User and system time that the process `id` has used until now, all its threads together.
pub(crate) fn cpu_time(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name in brackets may hold spaces; the two numbers are fields 14 and 15 of the line.
    let (_, fields) = stat.rsplit_once(") ").context("no name in the line")?;
    let times = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = times.sum::<Result<_, _>>().context("not a number")?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Removes a folder with all that is in it; it need not exist.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    Ok(())
}
