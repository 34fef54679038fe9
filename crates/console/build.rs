//! Builds the web console in a copy of its sources, so that the source tree stays as it is, and
//! lists its files.
//!
//! `GALLEY_CONSOLE` selects a build: `auto`, the default, in release profiles only; `build` always,
//! and `required` with an error if it fails; `skip` never. A build that fails leaves the program
//! without a console, with a warning.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The sources, relative to the workspace's root. Folders are copied with all files.
const SOURCES: [&str; 12] = [
    "package.json",
    "package-lock.json",
    "console/package.json",
    "console/index.html",
    "console/vite.config.ts",
    "console/svelte.config.js",
    "console/tsconfig.json",
    "console/src",
    "clients/typescript/client/package.json",
    "clients/typescript/tiptap/package.json",
    "clients/typescript/tiptap/src",
    "examples/tiptap-editor/package.json",
];

/// The oldest versions of Node.js that the tools support, by major version.
const NODE_VERSIONS: [(u32, u32); 2] = [(20, 19), (22, 12)];

fn main() -> Outcome<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=GALLEY_CONSOLE");
    // The compiled script may run for another copy of the workspace with the same target directory.
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../..");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mode = std::env::var("GALLEY_CONSOLE").unwrap_or_else(|_| "auto".to_owned());
    let is_release = std::env::var("PROFILE")? == "release";
    let is_built = match mode.as_str() {
        "auto" => is_release,
        "build" | "required" => true,
        "skip" => false,
        other => {
            return Err(format!("GALLEY_CONSOLE={other}: use auto, build, required or skip").into());
        }
    };
    let built = if is_built { build(&root, &out).map(Some) } else { Ok(None) };
    let dist = match built {
        Ok(dist) => dist,
        Err(error) if mode == "required" => return Err(error),
        Err(error) => {
            println!("cargo:warning=the program has no web console: {error}");
            None
        }
    };
    let mut files = Vec::new();
    if let Some(dist) = &dist {
        list_files(dist, dist, &mut files)?;
        files.sort();
    }
    let mut text =
        "/// The paths and the compressed contents of the files. Empty without a console.\n\
                    pub const FILES: &[(&str, &[u8])] = &[\n"
            .to_owned();
    for (number, (name, path)) in files.iter().enumerate() {
        let compressed = out.join(format!("{number}.gz"));
        let mut encoder = GzEncoder::new(fs::File::create(&compressed)?, Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        encoder.finish()?;
        let path = compressed.to_str().ok_or("a path is not UTF-8")?;
        writeln!(text, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    text.push_str("];\n");
    fs::write(out.join("files.rs"), text)?;
    Ok(())
}

/// Builds the console, and returns the folder of its files.
fn build(root: &Path, out: &Path) -> Outcome<PathBuf> {
    check_node()?;
    let copy = out.join("console");
    for source in SOURCES {
        copy_all(&root.join(source), &copy.join(source))?;
    }
    // The lock file is copied once more after a complete installation.
    let lock = fs::read(root.join("package-lock.json"))?;
    let installed = copy.join("installed.json");
    if !fs::read(&installed).is_ok_and(|before| before == lock) {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"];
        run("npm", &arguments, &copy)?;
        fs::write(&installed, lock)?;
    }
    run("npm", &["run", "build"], &copy)?;
    Ok(copy.join("console/dist"))
}

fn check_node() -> Outcome<()> {
    let version =
        run("node", &["--version"], Path::new(".")).map_err(|_| "Node.js is not installed")?;
    let mut parts = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
        return Err(format!("Node.js has the unknown version {version}").into());
    };
    let known = NODE_VERSIONS.iter().find(|(least, _)| *least == major);
    let is_supported = known.map_or(major >= 24, |(_, least)| minor >= *least);
    if is_supported { Ok(()) } else { Err(format!("Node.js {version} is not supported").into()) }
}

/// Runs a program, and returns its output.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Outcome<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("{program} can't be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).take(4).collect();
    Err(format!("{program} {} failed: {}", arguments.join(" "), lines.join("; ")).into())
}

/// Copies a file or a folder. Files that the source no longer has are removed.
fn copy_all(from: &Path, to: &Path) -> Outcome<()> {
    if from.is_file() {
        fs::create_dir_all(to.parent().ok_or("a file has a folder")?)?;
        fs::copy(from, to)?;
        return Ok(());
    }
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Adds the files of a folder, each with its path in the console.
fn list_files(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root)?.to_str().ok_or("a name is not UTF-8")?;
            files.push((name.replace('\\', "/"), path.clone()));
        }
    }
    Ok(())
}
