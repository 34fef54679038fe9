//! A directory that stores mails as files, for servers without a mail server.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::SendError;
use crate::message::{FromAddress, Mail};

/// The directory for mails. Each is a file that mail programs open and that only its owner can
/// read.
#[derive(Debug)]
pub struct Outbox {
    directory: PathBuf,
    from: FromAddress,
}

impl Outbox {
    /// Creates an outbox in this directory. The directory is created with the first mail.
    pub fn new(directory: PathBuf, from: FromAddress) -> Self {
        Self { directory, from }
    }

    /// Writes the mail to a file and returns its path. A mail with the same identifier is
    /// overwritten.
    pub(crate) fn store(&self, mail: &Mail) -> Result<PathBuf, SendError> {
        let bytes = mail.to_message(&self.from)?.formatted();
        let path = self.directory.join(format!("{}.eml", mail.id));
        self.write(&path, &bytes).map_err(|error| {
            SendError::Failed(format!("{} can't be written: {error}", path.display()))
        })?;
        Ok(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // The file has a temporary name until it is complete.
        let unfinished = path.with_extension("part");
        // Deletes the file of a program that was killed, or a symbolic link, instead of writing
        // into it.
        let _ = fs::remove_file(&unfinished);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        File::open(&self.directory)?.sync_all()
    }
}
