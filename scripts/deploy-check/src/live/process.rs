//! A child process that ends with its owner.

use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// A child process; dropping it asks it to end and waits until it has.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        let _ = Command::new("kill")
            .arg(self.0.id().to_string())
            .stderr(Stdio::null())
            .status();
        let _ = self.0.wait();
    }
}

/// Runs a command, which must succeed, and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {text}{error}",
        output.status
    );
    Ok(text)
}
