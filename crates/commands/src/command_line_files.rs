//! `galley completion`, `galley manpage` and `galley config --template`: files from the definitions
//! of the command line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap_complete::Shell;

use crate::cli::{self, Command};
use crate::settings::HEADING;
use crate::settings_file;

/// Runs a command that needs neither settings nor a database. Returns `None` for others.
pub fn run(command: &Command) -> Option<anyhow::Result<ExitCode>> {
    let result = match command {
        Command::Completion { shell } => completion(*shell),
        Command::Manpage { directory } => manpages(directory),
        Command::Config { template: true } => {
            crate::say!("{}", settings_file::template().trim_end());
            Ok(())
        }
        _ => return None,
    };
    Some(result.map(|()| ExitCode::SUCCESS))
}

/// Prints the completion script of a shell.
fn completion(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "galley", &mut script);
    let script = String::from_utf8(script).context("the script is no text")?;
    crate::say!("{}", script.trim_end());
    Ok(())
}

/// Writes a manual page for each command. Only that of the program has the settings, which all
/// commands share.
fn manpages(directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("can't create {}", directory.display()))?;
    let mut program = cli::command().disable_help_subcommand(true);
    program.build();
    clap_mangen::generate_to(program.mut_subcommands(without_settings), directory)
        .with_context(|| format!("can't write to {}", directory.display()))
}

fn without_settings(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let is_setting = argument.get_help_heading() == Some(HEADING);
        argument.hide(is_setting)
    });
    command.mut_subcommands(without_settings)
}
