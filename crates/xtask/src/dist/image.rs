//! The container image: an archive with the layout of the Open Container Initiative (OCI).
//!
//! The image has the program, and its libraries and root certificates from packages of Debian. It
//! has no shell.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::release::{Release, copy};
use crate::child;

/// The packages of Debian whose files the image has.
const PACKAGES: [&str; 3] = ["ca-certificates", "libc6", "libgcc-s1"];

/// The parts of these packages that the program doesn't use.
const UNUSED: [&str; 11] = [
    "etc/ca-certificates",
    "etc/ld.so.conf.d",
    "lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/audit",
    "usr/sbin",
    "usr/share/ca-certificates",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/gcc",
];

/// The user of the program, which has no name on the host.
const USER: u32 = 65_532;

/// A second in the unit of Docker's durations.
const SECOND: u64 = 1_000_000_000;

const DATA: &str = "var/lib/galley";

/// Writes the image.
pub(super) fn write(release: &Release) -> Result<()> {
    let work = release.out.join("image");
    let root = work.join("root");
    unpack_packages(&work, &root)?;
    add_files(release, &root)?;
    let layout = work.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let layer = work.join("layer.tar");
    let mut tar = release.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--file"]).arg(&layer);
    tar.arg(format!("--exclude=./{DATA}")).arg("--exclude=./tmp");
    child::output(tar.arg("--directory").arg(&root).arg("."))?;
    // A new volume gets the owner and the mode of the folder in the image.
    for (folder, owner, mode) in [(DATA, USER, "700"), ("tmp", 0, "1777")] {
        let mut append = release.tar();
        append.args([format!("--owner={owner}"), format!("--group={owner}")]);
        append.args(["--mode", mode, "--append", "--file"]).arg(&layer);
        child::output(append.arg("--directory").arg(&root).arg(format!("./{folder}")))?;
    }
    let diff_id = sha256(&layer)?;
    child::output(Command::new("gzip").arg("-9n").arg(&layer))?;
    let layer = add_blob(&layout, &work.join("layer.tar.gz"))?;
    let config = work.join("config.json");
    fs::write(&config, configuration(release, &diff_id)?.to_string())?;
    let config = add_blob(&layout, &config)?;
    let typed = |blob: Value, kind: &str| {
        let mut blob = blob;
        blob["mediaType"] = format!("application/vnd.oci.image.{kind}").into();
        blob
    };
    let manifest = work.join("manifest.json");
    let content = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": typed(config, "config.v1+json"),
        "layers": [typed(layer, "layer.v1.tar+gzip")],
    });
    fs::write(&manifest, content.to_string())?;
    let mut manifest = typed(add_blob(&layout, &manifest)?, "manifest.v1+json");
    // Podman and Docker name the image by different annotations.
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": format!("galley:{}", release.version),
        "io.containerd.image.name": format!("docker.io/library/galley:{}", release.version),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    fs::write(layout.join("index.json"), index.to_string())?;
    fs::write(layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    let name = format!("{}-{}-oci.tar", release.name(), release.architecture());
    let mut tar = release.tar();
    tar.args(["--owner=0", "--group=0", "--create", "--file"]).arg(release.out.join(name));
    child::output(tar.arg("--directory").arg(&layout).args(["blobs", "index.json", "oci-layout"]))?;
    Ok(fs::remove_dir_all(work)?)
}

/// Downloads the packages of this machine's Debian, and unpacks them.
fn unpack_packages(work: &Path, root: &Path) -> Result<()> {
    let downloads = work.join("packages");
    fs::create_dir_all(&downloads)?;
    fs::create_dir_all(root.join("var/lib/dpkg/status.d"))?;
    // apt downloads as a user of its own, unless it is told not to.
    let mut download = Command::new("apt-get");
    download.args(["download", "--option", "APT::Sandbox::User=root"]).args(PACKAGES);
    child::output(download.current_dir(&downloads)).context("the packages of Debian")?;
    let mut packages: Vec<PathBuf> =
        fs::read_dir(&downloads)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    packages.sort();
    for package in packages {
        child::output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(root))?;
        // Scanners find the packages of an image without a package manager here.
        let control = child::output(Command::new("dpkg-deb").arg("--field").arg(&package))?;
        let name = control.lines().find_map(|line| line.strip_prefix("Package: "));
        let name = name.context("a package has no name")?;
        fs::write(root.join("var/lib/dpkg/status.d").join(name), &control)?;
    }
    let certificates = root.join("usr/share/ca-certificates/mozilla");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&certificates)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut bundle = String::new();
    for path in paths {
        bundle.push_str(fs::read_to_string(path)?.trim_end());
        bundle.push('\n');
    }
    fs::create_dir_all(root.join("etc/ssl/certs"))?;
    fs::write(root.join("etc/ssl/certs/ca-certificates.crt"), bundle)?;
    for unused in UNUSED {
        let path = root.join(unused);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// Adds the program and the files of a system.
fn add_files(release: &Release, root: &Path) -> Result<()> {
    for folder in ["usr/bin", "tmp", DATA, "etc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    copy(&release.stage.join("galley"), &root.join("usr/bin/galley"))?;
    let documents = root.join("usr/share/doc/galley");
    fs::create_dir_all(&documents)?;
    copy(&release.stage.join("THIRD-PARTY-NOTICES"), &documents.join("THIRD-PARTY-NOTICES"))?;
    copy(&release.root.join("LICENSE-MIT"), &documents.join("copyright"))?;
    let user = format!("root:x:0:0::/:/\ngalley:x:{USER}:{USER}::/{DATA}:/usr/sbin/nologin\n");
    fs::write(root.join("etc/passwd"), user)?;
    fs::write(root.join("etc/group"), format!("root:x:0:\ngalley:x:{USER}:\n"))?;
    fs::write(root.join("etc/nsswitch.conf"), "hosts: files dns\n")?;
    Ok(())
}

fn configuration(release: &Release, diff_id: &str) -> Result<Value> {
    let mut date = Command::new("date");
    let date =
        date.args(["--utc", "--iso-8601=seconds", "--date"]).arg(format!("@{}", release.time));
    let created = child::output(date)?.trim().replace("+00:00", "Z");
    Ok(json!({
        "created": created,
        "architecture": release.architecture(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": {"8080/tcp": {}},
            "Env": [
                "PATH=/usr/bin",
                "GALLEY_LISTEN=0.0.0.0:8080",
                // The address after `--publish 8080:8080`.
                "GALLEY_PUBLIC_URL=http://localhost:8080",
                format!("GALLEY_DATA_DIR=/{DATA}"),
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
            ],
            "Entrypoint": ["galley"],
            "Cmd": ["serve"],
            "Volumes": {format!("/{DATA}"): {}},
            "WorkingDir": format!("/{DATA}"),
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "Galley",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
            // Docker's addition to the specification.
            "Healthcheck": {
                "Test": ["CMD", "galley", "healthcheck"],
                "Interval": 30 * SECOND,
                "Timeout": 6 * SECOND,
                "StartPeriod": 10 * SECOND,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff_id}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    }))
}

/// Moves a file into the layout, and returns its descriptor without the type.
fn add_blob(layout: &Path, file: &Path) -> Result<Value> {
    let digest = sha256(file)?;
    let size = fs::metadata(file)?.len();
    fs::rename(file, layout.join("blobs/sha256").join(&digest))?;
    Ok(json!({"digest": format!("sha256:{digest}"), "size": size}))
}

fn sha256(file: &Path) -> Result<String> {
    let sums = child::output(Command::new("sha256sum").arg(file))?;
    let sum = sums.split_whitespace().next().context("sha256sum printed nothing")?;
    Ok(sum.to_owned())
}
