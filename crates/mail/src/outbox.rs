//! A directory for mails where there is no mail server.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::NotSent;
use crate::message::{Mail, Sender};

/// Keeps mails as files that a mail program opens. Only their owner reads them.
#[derive(Debug)]
pub struct Outbox {
    directory: PathBuf,
    from: Sender,
}

impl Outbox {
    /// An outbox in this directory, which is made for the first mail.
    pub fn new(directory: PathBuf, from: Sender) -> Self {
        Self { directory, from }
    }

    /// Writes the mail down; the same one again takes the place of the first.
    pub(crate) fn keep(&self, mail: &Mail) -> Result<PathBuf, NotSent> {
        let bytes = mail.to_message(&self.from)?.formatted();
        let path = self.directory.join(format!("{}.eml", mail.id));
        self.write(&path, &bytes).map_err(|error| {
            NotSent::Failed(format!("{} can't be written: {error}", path.display()))
        })?;
        Ok(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut directory = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
        directory.recursive(true).create(&self.directory)?;
        // Under another name until it is whole.
        let unfinished = path.with_extension("part");
        // What stands there is of a program that was killed, or leads elsewhere: it is not written into.
        let _ = fs::remove_file(&unfinished);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        File::open(&self.directory)?.sync_all()
    }
}
