//! A model of a disk, and the states that a power cut may leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::{Rng, RngExt};

use super::record::Call;

/// The unit that a disk writes atomically, in bytes.
const SECTOR: usize = 512;

/// A change of a file that may or may not be on the disk.
#[derive(Debug, Clone, Copy)]
enum Change<'c> {
    Bytes(usize, &'c [u8]),
    Length(usize),
}

impl Change<'_> {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, new) => {
                let end = offset + new.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset..end].copy_from_slice(new);
            }
            Self::Length(length) => bytes.resize(length, 0),
        }
    }

    /// Returns a random part of its sectors.
    fn torn(self, random: &mut impl Rng) -> Vec<Self> {
        match self {
            Self::Length(_) => Vec::new(),
            Self::Bytes(offset, bytes) => {
                let mut parts = Vec::new();
                let mut start = 0;
                while start < bytes.len() {
                    let end = (((offset + start) / SECTOR + 1) * SECTOR - offset).min(bytes.len());
                    if random.random() {
                        parts.push(Self::Bytes(offset + start, &bytes[start..end]));
                    }
                    start = end;
                }
                parts
            }
        }
    }
}

/// A file, independent of its names.
#[derive(Debug, Default)]
struct File<'c> {
    /// The content that is certain to be on the disk.
    kept: Vec<u8>,
    /// The later changes, each with its call's index.
    pending: Vec<(usize, Change<'c>)>,
    /// The length as the program sees it.
    length: usize,
}

/// A change of names.
#[derive(Debug, Clone)]
enum Naming {
    Made(PathBuf, usize),
    Moved(PathBuf, PathBuf),
    Gone(PathBuf),
}

type Names = BTreeMap<PathBuf, usize>;

fn rename(names: &mut Names, naming: &Naming) {
    match naming {
        Naming::Made(path, file) => {
            names.insert(path.clone(), *file);
        }
        Naming::Moved(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Naming::Gone(path) => {
            names.remove(path);
        }
    }
}

/// A disk with the files of one directory.
#[derive(Debug, Default)]
pub(super) struct Disk<'c> {
    files: Vec<File<'c>>,
    /// The names as the program sees them.
    names: Names,
    /// The names that are certain to be on the disk. `pending` has the later changes.
    kept: Names,
    pending: Vec<(usize, Naming)>,
    /// The syncs in progress: the index of the end, the index of the start, and the path.
    syncs: Vec<(usize, usize, PathBuf)>,
}

impl<'c> Disk<'c> {
    fn name(&mut self, at: usize, naming: Naming) {
        rename(&mut self.names, &naming);
        self.pending.push((at, naming));
    }

    fn change(&mut self, at: usize, path: &Path, change: impl FnOnce(&File<'c>) -> Change<'c>) {
        let Some(&number) = self.names.get(path) else { return };
        let file = &mut self.files[number];
        let change = change(file);
        match change {
            Change::Bytes(offset, bytes) => file.length = file.length.max(offset + bytes.len()),
            Change::Length(length) => file.length = length,
        }
        file.pending.push((at, change));
    }

    /// Applies the call at this index.
    pub(super) fn follow(&mut self, at: usize, call: &'c Call, directory: &Path) {
        match call {
            Call::Open { path, creates, truncates } => {
                if *creates && !self.names.contains_key(path) {
                    self.files.push(File::default());
                    self.name(at, Naming::Made(path.clone(), self.files.len() - 1));
                } else if *truncates {
                    self.change(at, path, |_| Change::Length(0));
                }
            }
            Call::Write { path, offset, bytes } => {
                self.change(at, path, |file| Change::Bytes(offset.unwrap_or(file.length), bytes));
            }
            Call::Truncate { path, length } => self.change(at, path, |_| Change::Length(*length)),
            Call::Link { from, to } => {
                if let Some(&file) = self.names.get(from) {
                    self.name(at, Naming::Made(to.clone(), file));
                }
            }
            Call::Rename { from, to } => self.name(at, Naming::Moved(from.clone(), to.clone())),
            Call::Unlink { path } => self.name(at, Naming::Gone(path.clone())),
            Call::Sync { path, done } => {
                if let Some(done) = done {
                    self.syncs.push((*done, at, path.clone()));
                }
            }
            Call::Answer { .. } | Call::Other => {}
        }
        let (ended, under_way) =
            std::mem::take(&mut self.syncs).into_iter().partition(|(done, ..)| *done <= at);
        self.syncs = under_way;
        for (_, began, path) in ended {
            if path == directory {
                let sure = self.pending.iter().take_while(|(at, _)| *at < began).count();
                for (_, naming) in self.pending.drain(..sure) {
                    rename(&mut self.kept, &naming);
                }
            } else if let Some(&number) = self.names.get(&path) {
                let File { kept, pending, .. } = &mut self.files[number];
                let sure = pending.iter().take_while(|(at, _)| *at < began).count();
                for (_, change) in pending.drain(..sure) {
                    change.apply(kept);
                }
            }
        }
    }

    /// Returns true if some state is uncertain after a cut.
    pub(super) fn is_open(&self) -> bool {
        !self.pending.is_empty() || self.files.iter().any(|file| !file.pending.is_empty())
    }

    /// Writes a state that a cut may leave: only the certain state, all changes, or some of them.
    pub(super) fn leave(&self, directory: &Path, cut: Cut, random: &mut impl Rng) {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).unwrap();
        let mut names = self.kept.clone();
        let namings = match cut {
            Cut::Least => 0,
            Cut::All => self.pending.len(),
            Cut::Some => random.random_range(0..=self.pending.len()),
        };
        for (_, naming) in &self.pending[..namings] {
            rename(&mut names, naming);
        }
        for (path, number) in names {
            let File { kept, pending, .. } = &self.files[number];
            let mut bytes = kept.clone();
            // Often most changes are on the disk, or very few.
            let often = [0.1, 0.5, 0.9][random.random_range(0..3)];
            for (_, change) in pending {
                match cut {
                    Cut::All => change.apply(&mut bytes),
                    Cut::Some if random.random_bool(0.1) => {
                        change.torn(random).into_iter().for_each(|part| part.apply(&mut bytes));
                    }
                    Cut::Some if random.random_bool(often) => change.apply(&mut bytes),
                    Cut::Least | Cut::Some => {}
                }
            }
            std::fs::write(directory.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}

/// The extent to which changes that were not synced survive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    Least,
    All,
    Some,
}
