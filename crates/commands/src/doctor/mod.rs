//! `galley doctor`

mod backups;
mod database;
mod finding;
mod machine;
mod services;

use std::process::ExitCode;

use serde_json::json;

use crate::cli::DoctorArguments;
use crate::out::{escape_for_terminal, say};
use crate::settings::Settings;
use database::DatabaseFindings;
use finding::{Finding, Severity};
pub(crate) use machine::data_dir;

/// The exit status if the worst finding is a warning.
const WARNING: u8 = 1;

/// The exit status if a check fails, also if the settings can't be read.
const FAILURE: u8 = 2;

/// Checks all parts of an installation. Changes no data.
pub(crate) async fn run(
    settings: &Settings,
    arguments: &DoctorArguments,
) -> anyhow::Result<ExitCode> {
    let DatabaseFindings { database, clock, key, webhooks, bytes } =
        database::check(settings).await;
    let is_serving = services::is_serving(settings).await;
    let findings = [
        ("settings", services::settings(settings)),
        ("data directory", machine::data_dir(&settings.data_dir).into()),
        ("disk", machine::disk(settings, bytes)),
        ("open files", machine::open_files()),
        ("clock", clock),
        ("database", database),
        ("key", key),
        ("asset store", services::asset_store(settings).await),
        ("mail", services::mail(settings).await),
        ("identity provider", services::identity_provider(settings).await),
        ("traces", services::traces(settings).await),
        ("webhooks", webhooks),
        ("address", services::listen(settings, is_serving).await),
        ("public address", services::public_address(settings, is_serving).await),
        ("proxy headers", services::proxy_headers(settings)),
        ("backups", backups::check(settings, arguments)),
    ];
    Ok(report(&findings, arguments))
}

/// Reports that the settings can't be read, so that nothing else can be checked.
pub fn report_settings(error: &anyhow::Error, arguments: &DoctorArguments) -> ExitCode {
    report(&[("settings", Finding::failure(format!("{error:#}")))], arguments)
}

/// Prints the findings. Returns the exit status of the worst one.
fn report(findings: &[(&str, Finding)], arguments: &DoctorArguments) -> ExitCode {
    let worst = findings.iter().map(|(_, finding)| finding.severity()).max();
    let worst = worst.unwrap_or(Severity::Ok);
    if arguments.json {
        let list = findings.iter().map(|(name, finding)| {
            let (severity, message) = (finding.severity(), finding.message());
            json!({"check": name, "severity": severity, "message": message})
        });
        say!("{}", json!({"severity": worst, "findings": list.collect::<Vec<_>>()}));
    } else {
        for (name, finding) in findings {
            let label = match finding.severity() {
                Severity::Ok => "ok     ",
                Severity::Warning => "WARNING",
                Severity::Failure => "FAILURE",
            };
            say!("{label}  {name}: {}", escape_for_terminal(finding.message()));
        }
    }
    match worst {
        Severity::Ok => ExitCode::SUCCESS,
        Severity::Warning => WARNING.into(),
        Severity::Failure => FAILURE.into(),
    }
}
