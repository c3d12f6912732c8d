//! The progress bar of imports and exports, seen only on a terminal.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::console;

/// A number of records in words.
pub(crate) fn count(records: u64) -> String {
    let plural = if records == 1 { "" } else { "s" };
    format!("{} record{plural}", HumanCount(records))
}

/// A bar, or nothing where nobody would see it.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress through `total` bytes, or through an unknown number of them.
    pub(crate) fn bytes(total: Option<u64>) -> Self {
        let target = if console::shows_progress() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {msg} eta {eta}",
            None => "{spinner} {bytes} {bytes_per_sec} {msg}",
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.expect("the templates are constants of this program"));
        Self { bar }
    }

    /// Moves to `bytes` and `records` done.
    pub(crate) fn show(&self, bytes: u64, records: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_position(bytes);
            self.bar.set_message(count(records));
        }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
