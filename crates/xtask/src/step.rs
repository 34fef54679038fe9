//! Headings and durations of commands with several steps.

use std::time::Instant;

/// The steps of one command, and the skipped parts.
#[derive(Default)]
pub(crate) struct Steps {
    lines: Vec<String>,
}

impl Steps {
    /// Runs one step under its heading, and records its duration.
    pub(crate) fn run<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        eprintln!("\n==== {name}");
        let start = Instant::now();
        let result = work();
        let line = format!("{:>7.1} s  {name}", start.elapsed().as_secs_f64());
        eprintln!("{line}");
        self.lines.push(line);
        result
    }

    /// Records a skipped part and the reason. The summary repeats it.
    pub(crate) fn skip(&mut self, part: &str, reason: &str) {
        let line = format!("SKIPPED: {part}: {reason}");
        eprintln!("\n{line}");
        self.lines.push(line);
    }

    /// Prints all steps once more, as their output has scrolled away.
    pub(crate) fn summarize(&self) {
        eprintln!("\n==== Summary");
        for line in &self.lines {
            eprintln!("{line}");
        }
    }
}
