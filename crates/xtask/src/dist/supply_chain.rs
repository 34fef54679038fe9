//! The licences of all libraries, and the bills of materials (CycloneDX) of the program and of its
//! web console.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::release::Release;
use crate::{cargo, child};

const CARGO_ABOUT_VERSION: &str = "0.9.3";
const CARGO_CYCLONEDX_VERSION: &str = "0.5.9";

pub(super) fn write(release: &Release) -> Result<()> {
    let console = console()?;
    write_notices(release, &console)?;
    write_bill_of_program(release)?;
    write_bill_of_console(release, &console)
}

/// Returns the folder in which the build script has built the console.
fn console() -> Result<PathBuf> {
    let builds = cargo::target_directory().join("dist/build");
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(&builds)? {
        let folder = entry?.path().join("out/console");
        let built = fs::metadata(folder.join("console/dist/index.html"));
        let Ok(time) = built.and_then(|file| file.modified()) else { continue };
        if newest.as_ref().is_none_or(|(before, _)| *before < time) {
            newest = Some((time, folder));
        }
    }
    Ok(newest.context("the console is not built")?.1)
}

/// Writes the licences of the crates by cargo-about, and those of the console by Vite.
fn write_notices(release: &Release, console: &Path) -> Result<()> {
    // Without optimisations, its comparison of texts takes ten minutes.
    let tools = cargo::install("cargo-about", CARGO_ABOUT_VERSION, &["--features", "cli"])?;
    let mut about = Command::new(tools.join("cargo-about"));
    about.args(["generate", "--frozen", "--fail", "deploy/notices.hbs"]);
    about.args(["--manifest-path", "crates/galley/Cargo.toml"]);
    let mut notices = child::output(about.current_dir(&release.root)).context("cargo-about")?;
    let of_console = console.join("console/dist/licenses.md");
    notices.push_str(&fs::read_to_string(of_console).context("the licences of the console")?);
    Ok(fs::write(release.stage.join("THIRD-PARTY-NOTICES"), notices)?)
}

/// Writes the bill of the crates. The tool writes beside manifests, so it gets a copy of the
/// sources.
fn write_bill_of_program(release: &Release) -> Result<()> {
    let tools = cargo::install("cargo-cyclonedx", CARGO_CYCLONEDX_VERSION, &["--debug"])?;
    let source = release.out.join("source");
    fs::create_dir_all(&source)?;
    let mut list = Command::new("sh");
    list.args(["-c", "git ls-files -z | tar --create --null --files-from=- --file=-"]);
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--directory"]).arg(&source);
    let mut listed =
        list.current_dir(&release.root).stdout(std::process::Stdio::piped()).spawn()?;
    unpack.stdin(listed.stdout.take().context("the list has no output")?);
    child::output(&mut unpack)?;
    listed.wait()?;
    let mut bill = Command::new(tools.join("cargo-cyclonedx"));
    bill.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    bill.args(["--target", &release.target, "--override-filename", "bill"]);
    bill.args(["--manifest-path", "crates/galley/Cargo.toml"]);
    bill.env("SOURCE_DATE_EPOCH", &release.time);
    child::output(bill.current_dir(&source)).context("cargo-cyclonedx")?;
    let text = fs::read_to_string(source.join("crates/galley/bill.json"))?;
    let text = text.replace(&*source.to_string_lossy(), "");
    fs::remove_dir_all(&source)?;
    finish_bill(release, &text, "galley")
}

fn write_bill_of_console(release: &Release, console: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--omit=dev"]);
    npm.args(["--workspace=console"]).current_dir(console);
    finish_bill(release, &child::output(&mut npm)?, "galley-console")
}

/// Writes a bill without the parts that differ in each run.
fn finish_bill(release: &Release, text: &str, name: &str) -> Result<()> {
    let mut bill: Value = serde_json::from_str(text)?;
    if let Some(fields) = bill.as_object_mut() {
        fields.remove("serialNumber");
    }
    if let Some(metadata) = bill["metadata"].as_object_mut() {
        metadata.remove("timestamp");
    }
    let text = serde_json::to_string_pretty(&bill)? + "\n";
    Ok(fs::write(release.out.join(format!("{name}-{}.cdx.json", release.version)), text)?)
}
