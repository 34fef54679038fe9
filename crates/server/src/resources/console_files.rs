//! The files of the web console, which the program embeds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::respond::compressed_file::CompressedFile;
use crate::respond::response::StaticFile;

/// The name of the page among the files.
const PAGE: &str = "index.html";

/// The files of the console, by their paths. Clones share them.
#[derive(Clone, Default)]
pub struct ConsoleFiles(Arc<BTreeMap<&'static str, CompressedFile>>);

impl ConsoleFiles {
    /// Creates the files from paths and contents, which gzip has compressed. Without
    /// `index.html`, there is no console.
    pub fn new(files: &[(&'static str, &'static [u8])]) -> Self {
        let file = |&(path, bytes): &(&'static str, &'static [u8])| {
            (path, CompressedFile::new(content_type(path), bytes))
        };
        Self(Arc::new(files.iter().map(file).collect()))
    }

    /// Returns the page.
    pub(crate) fn page(&self) -> Option<&StaticFile> {
        self.get(PAGE).map(CompressedFile::decompressed)
    }

    /// Returns a file by its path.
    pub(crate) fn get(&self, path: &str) -> Option<&CompressedFile> {
        self.0.get(path)
    }
}

impl fmt::Debug for ConsoleFiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
