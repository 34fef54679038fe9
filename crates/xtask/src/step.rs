//! Headings and times: what a person sees of a command with several steps.

use std::time::Instant;

/// The steps of one command, and what was left out.
#[derive(Default)]
pub(crate) struct Steps {
    lines: Vec<String>,
}

impl Steps {
    /// Does one step under its heading, and notes how long it took.
    pub(crate) fn run<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        eprintln!("\n==== {name}");
        let start = Instant::now();
        let result = work();
        let line = format!("{:>7.1} s  {name}", start.elapsed().as_secs_f64());
        eprintln!("{line}");
        self.lines.push(line);
        result
    }

    /// Notes a part that is left out, and why; the summary says it again.
    pub(crate) fn skip(&mut self, part: &str, reason: &str) {
        let line = format!("SKIPPED: {part}: {reason}");
        eprintln!("\n{line}");
        self.lines.push(line);
    }

    /// Prints all steps once more, after their output has scrolled them away.
    pub(crate) fn summarize(&self) {
        eprintln!("\n==== Summary");
        for line in &self.lines {
            eprintln!("{line}");
        }
    }
}
