//! The target folder of an export. Files are replaced atomically, and files of an earlier export
//! are removed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use futures_util::StreamExt;
use galley_assets::{AssetStore, FileName, HashingReader};
use galley_domain::asset::AssetFile;
use sha2::{Digest, Sha256};

use super::names;
use crate::bundle::manifest::is_bundle;
use crate::own_files::OwnFiles;
use crate::private_files;

/// The file with the list of exported files.
const LIST_FILE: &str = ".galley-export";

/// The kind of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportKind {
    /// A group as Markdown.
    Markdown,
    /// A workspace as a bundle.
    Bundle,
}

/// An export folder that is being written.
#[derive(Debug)]
pub(crate) struct ExportFolder {
    path: PathBuf,
    kind: ExportKind,
    /// The files of the exported database. Closing one of them would drop locks.
    own: OwnFiles,
    /// The files of an earlier export.
    before: BTreeSet<String>,
    now: BTreeSet<String>,
    written: usize,
    problems: Vec<String>,
}

impl ExportFolder {
    /// Opens a folder that is new, empty, or from an earlier export. It may have hidden files, such
    /// as a repository's.
    pub(crate) fn open(path: &Path, kind: ExportKind, own: OwnFiles) -> anyhow::Result<Self> {
        make(path, kind).with_context(|| format!("{} can't be created", path.display()))?;
        if own.includes(&path.join(LIST_FILE)) {
            bail!("{} belongs to the database that is exported", path.join(LIST_FILE).display());
        }
        let before = match exported_files(path) {
            Ok(before) => {
                let was = if is_bundle(path) { ExportKind::Bundle } else { ExportKind::Markdown };
                if was != kind && !before.is_empty() {
                    bail!(
                        "{} contains {}, which the export would delete: name another folder",
                        path.display(),
                        if was == ExportKind::Bundle { "a bundle" } else { "Markdown files" },
                    );
                }
                before
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut files = fs::read_dir(path)?.filter_map(Result::ok);
                if files.any(|file| !file.file_name().to_string_lossy().starts_with('.')) {
                    bail!(
                        "{} is neither empty nor an earlier export: name another folder",
                        path.display()
                    );
                }
                BTreeSet::new()
            }
            Err(error) => {
                return Err(error).with_context(|| format!("{}", path.join(LIST_FILE).display()));
            }
        };
        // From here on, the folder counts as an export, even if this run is interrupted.
        write_list(path, &before, kind)?;
        let path = path.to_owned();
        let (now, problems) = (BTreeSet::new(), Vec::new());
        Ok(Self { path, kind, own, before, now, written: 0, problems })
    }

    /// Writes a file, unless it has the same content already.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        match self.claim(name).and_then(|()| self.try_write(name, text)) {
            Ok(true) => self.written += 1,
            Ok(false) => {}
            Err(error) => {
                self.problems.push(format!("{}: {error:#}", self.path.join(name).display()));
            }
        }
    }

    /// Writes the file of an asset, unless it is there already.
    pub(crate) async fn write_asset(
        &mut self,
        name: &str,
        store: &AssetStore,
        stored: &FileName,
        file: &AssetFile,
    ) {
        let written = match self.claim(name) {
            Ok(()) => self.try_write_asset(name, store, stored, file).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(true) => self.written += 1,
            Ok(false) => {}
            Err(error) => {
                self.problems.push(format!("{}: {error:#}", self.path.join(name).display()));
            }
        }
    }

    /// Adds a file to this export. Rejects one that exists and is not from an earlier export.
    fn claim(&mut self, name: &str) -> anyhow::Result<()> {
        if !self.before.contains(name) && !self.now.contains(name) {
            if fs::symlink_metadata(self.path_of(name)?).is_ok() {
                bail!("is not from an earlier export: move it, or export into another folder");
            }
            // The list comes first, so that the file is known even if this run is interrupted.
            let mut list = fs::OpenOptions::new().append(true).open(self.path.join(LIST_FILE))?;
            list.write_all(format!("{name}\n").as_bytes())?;
        }
        self.now.insert(name.to_owned());
        Ok(())
    }

    async fn try_write_asset(
        &self,
        name: &str,
        store: &AssetStore,
        stored: &FileName,
        file: &AssetFile,
    ) -> anyhow::Result<bool> {
        let path = self.path_of(name)?;
        let size = file.bytes();
        let there = fs::symlink_metadata(&path);
        if there.is_ok_and(|there| there.is_file() && there.len() == size)
            && !self.own.includes(&path)
        {
            let mut reader = HashingReader::new(fs::File::open(&path)?);
            io::copy(&mut reader, &mut io::sink())?;
            if reader.into_sha256() == file.sha256 {
                return Ok(false);
            }
        }
        make(path.parent().unwrap_or(&self.path), self.kind)?;
        let mut stream = store.stream(stored, 0..size).await?;
        let (unfinished, mut target) = create_unfinished(&path, self.kind)?;
        let (mut written, mut hash) = (Ok(()), Sha256::new());
        while written.is_ok()
            && let Some(chunk) = stream.next().await
        {
            written = match chunk {
                Ok(chunk) => {
                    hash.update(&chunk);
                    target.write_all(&chunk).map_err(Into::into)
                }
                Err(error) => Err(anyhow::Error::new(error)),
            };
        }
        if written.is_ok() && hash.finalize()[..] != file.sha256 {
            written = Err(anyhow::anyhow!("{stored} has another SHA-256 in the store"));
        }
        let written = written.and_then(|()| Ok(fs::rename(&unfinished, &path)?));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.map(|()| true)
    }

    fn try_write(&self, name: &str, text: &str) -> anyhow::Result<bool> {
        let path = self.path_of(name)?;
        let there = fs::symlink_metadata(&path);
        let is_as_long = there.is_ok_and(|file| file.is_file() && file.len() == text.len() as u64);
        if is_as_long
            && !self.own.includes(&path)
            && fs::read(&path).is_ok_and(|there| there == text.as_bytes())
        {
            return Ok(false);
        }
        make(path.parent().unwrap_or(&self.path), self.kind)?;
        replace(&path, text, self.kind)?;
        Ok(true)
    }

    /// Returns the path of a file in the folder.
    fn path_of(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut parent = self.path.clone();
        for part in Path::new(name).parent().into_iter().flat_map(Path::components) {
            parent.push(part);
            // A link may lead out of the folder.
            if parent.is_symlink() {
                bail!("{} is a link, which is not followed", parent.display());
            }
        }
        Ok(self.path.join(name))
    }

    /// Removes the files that are not part of this export. Returns the number of written files, the
    /// number of removed files, and the problems.
    pub(crate) fn finish(mut self) -> anyhow::Result<(usize, usize, Vec<String>)> {
        let mut removed = 0;
        for name in self.before.difference(&self.now) {
            let Ok(path) = self.path_of(name) else { continue };
            match fs::remove_file(&path) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.problems.push(format!("{}: {error}", path.display())),
            }
            // Empty folders are removed. Removal of the others fails, and they stay.
            let parents = Path::new(name).ancestors().skip(1);
            for folder in parents.filter(|folder| !folder.as_os_str().is_empty()) {
                if fs::remove_dir(self.path.join(folder)).is_err() {
                    break;
                }
            }
        }
        write_list(&self.path, &self.now, self.kind)?;
        Ok((self.written, removed, self.problems))
    }
}

/// Creates the folder. A bundle contains e-mail addresses, so only its owner gets access.
fn make(path: &Path, kind: ExportKind) -> std::io::Result<()> {
    match kind {
        ExportKind::Markdown => fs::create_dir_all(path),
        ExportKind::Bundle => private_files::create_directory(path),
    }
}

/// Returns the files of the export in a folder.
pub(crate) fn exported_files(folder: &Path) -> std::io::Result<BTreeSet<String>> {
    let path = folder.join(LIST_FILE);
    if !fs::symlink_metadata(&path)?.is_file() {
        return Err(std::io::Error::other("is not a file"));
    }
    let text = fs::read_to_string(path)?;
    Ok(text.lines().filter(|line| names::is_exported_path(line)).map(ToOwned::to_owned).collect())
}

fn write_list(folder: &Path, names: &BTreeSet<String>, kind: ExportKind) -> anyhow::Result<()> {
    let mut list =
        String::from("# Files of `galley export`: the next one removes those that are no more.\n");
    for name in names {
        list.push_str(name);
        list.push('\n');
    }
    replace(&folder.join(LIST_FILE), &list, kind)
}

/// Replaces a file atomically. Files of a bundle are readable by their owner only, even in an
/// existing folder. A leftover unfinished file is removed first, as it may be a link to another
/// file.
fn replace(path: &Path, text: &str, kind: ExportKind) -> anyhow::Result<()> {
    let (unfinished, mut file) = create_unfinished(path, kind)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    Ok(written?)
}

/// Creates the unfinished file that will replace the one at a path.
fn create_unfinished(path: &Path, kind: ExportKind) -> io::Result<(PathBuf, fs::File)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = match kind {
        ExportKind::Markdown => fs::File::create_new(&unfinished),
        ExportKind::Bundle => private_files::create(&unfinished),
    };
    Ok((unfinished, file?))
}
