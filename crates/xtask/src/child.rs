//! Child processes: run to completion, with signals passed on.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::signals::{self, Signals};

/// The interval at which a running child is polled.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The number of lines of a failed program's standard error that an error shows.
const ERROR_LINES: usize = 10;

/// Runs a command with this program's standard streams, and waits for its end.
///
/// After a signal, no command is started any more. The returned status is then that of a program
/// killed by this signal.
pub(crate) fn run(command: &mut Command, signals: &Signals) -> Result<ExitStatus> {
    if let Some(signal) = signals.received() {
        return Ok(ExitStatus::from_raw(signal));
    }
    // In a terminal, the child stays in the terminal's process group, as it could not read from the
    // terminal otherwise. Without one, the child leads a group, so that its own children (Cargo's
    // tests) receive the signals as well.
    let leads_a_group = !signals::terminal_signals_children();
    if leads_a_group {
        command.process_group(0);
    }
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !told && let Some(signal) = signals.to_pass_on() {
            if leads_a_group {
                send_to_group(&child, signal);
            } else {
                send(&child, signal);
            }
            told = true;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Runs a command and returns its standard output. If it fails, the error shows the end of its
/// standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| cannot_start(command))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let program = command.get_program().display();
        bail!("{program} failed with {}:\n{}", output.status, last_lines(&stderr, ERROR_LINES));
    }
    Ok(stdout)
}

/// Writes a script that every user may execute.
pub(crate) fn write_script(path: &Path, script: &str) -> Result<()> {
    fs::write(path, script)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the last `count` lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Sends a signal to a child that has not been waited for yet.
pub(crate) fn send(child: &Child, signal: Signal) {
    // This fails only if the child has already ended.
    let _ = pid(child).map(|pid| kill_process(pid, signal));
}

/// Sends a signal to a child that leads a process group, and to the whole group.
fn send_to_group(child: &Child, signal: Signal) {
    let _ = pid(child).map(|pid| kill_process_group(pid, signal));
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Returns the exit code as a shell does: 128 plus the signal's number for a child killed by a
/// signal.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn cannot_start(command: &Command) -> String {
    format!("{} cannot be started", command.get_program().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_killed_children_follow_the_shell() {
        let killed = ExitStatus::from_raw(2);
        let failed = ExitStatus::from_raw(101 << 8);
        assert_eq!(format!("{:?}", exit_code(killed)), format!("{:?}", ExitCode::from(130)));
        assert_eq!(format!("{:?}", exit_code(failed)), format!("{:?}", ExitCode::from(101)));
    }

    #[test]
    fn errors_of_failed_commands_contain_their_output() {
        let error = output(Command::new("sh").args(["-c", "echo no room >&2; exit 3"]));
        assert!(error.is_err_and(|error| error.to_string().contains("no room")));
    }
}
