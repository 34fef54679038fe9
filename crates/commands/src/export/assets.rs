//! The files of the assets to which exported pieces refer, in the folder `assets`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use galley_application::Error;
use galley_assets::FileName;
use galley_content::{Address, Tree};
use galley_domain::asset::{Asset, AssetFile, referenced_keys};
use galley_domain::text::WebReference;
use galley_domain::{AssetKey, WorkspaceId};
use galley_storage::content_piece_view::PieceInView;
use galley_storage::{Snapshot, Tx, assets};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::names;

/// The folder of the files.
const FOLDER: &str = "assets";

/// The keys that one statement looks up.
const KEYS_PER_STATEMENT: usize = 1_000;

/// The characters that a relative address escapes.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'(').add(b')').add(b'<').add(b'>');

/// The files of an export.
#[derive(Debug)]
pub(super) struct ExportedAssets {
    workspace: WorkspaceId,
    /// The names of the files in the folder; `None` for addresses without an asset.
    names: HashMap<AssetKey, Option<String>>,
    /// The names in use, in lower case.
    taken: HashSet<String>,
    files: BTreeMap<String, (FileName, AssetFile)>,
}

impl ExportedAssets {
    pub(super) fn new(workspace: WorkspaceId) -> Self {
        let (names, taken, files) = Default::default();
        Self { workspace, names, taken, files }
    }

    /// Returns the files by their paths in the export.
    pub(super) fn into_files(self) -> BTreeMap<String, (FileName, AssetFile)> {
        self.files
    }

    /// Finds the assets to which pieces refer, and names their files.
    pub(super) async fn find(
        &mut self,
        snapshot: &Snapshot,
        pieces: &[PieceInView],
    ) -> Result<(), Error> {
        let mut keys = BTreeSet::new();
        for (piece, content) in pieces {
            let cover = piece.fields.cover_url.as_ref().map(WebReference::as_str);
            let texts = [content.as_deref(), cover].into_iter().flatten();
            keys.extend(texts.flat_map(referenced_keys));
        }
        keys.retain(|key| !self.names.contains_key(key));
        if keys.is_empty() {
            return Ok(());
        }
        let (workspace, keys) = (self.workspace, keys.into_iter().collect::<Vec<_>>());
        self.names.extend(keys.iter().map(|key| (*key, None)));
        let read = async move |tx: &Tx<'_>| {
            let mut found = Vec::new();
            for some in keys.chunks(KEYS_PER_STATEMENT) {
                found.extend(assets::list_by_keys(tx, workspace, some).await?);
            }
            Ok::<_, Error>(found)
        };
        let mut found = snapshot.read("export.assets", read).await?;
        // The numbers in names depend on the order.
        found.sort_by_key(|asset| asset.id);
        for asset in found {
            let key = asset.key;
            let name = self.add(asset);
            self.names.insert(key, Some(name));
        }
        Ok(())
    }

    fn add(&mut self, asset: Asset) -> String {
        let name = names::asset_name(asset.filename.as_str());
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) => (stem.to_owned(), format!(".{extension}")),
            None => (name.clone(), String::new()),
        };
        let numbered = (2..).map(|number| format!("{stem}-{number}{extension}"));
        let mut candidates = std::iter::once(name).chain(numbered);
        let name = candidates
            .find(|name| self.taken.insert(name.to_lowercase()))
            .expect("numbers do not end");
        let stored = FileName::original(self.workspace, asset.file.id);
        self.files.insert(format!("{FOLDER}/{name}"), (stored, asset.file));
        name
    }

    /// Returns the address of an asset's file, relative to an exported file.
    pub(super) fn relative(&self, address: &str, exported: &str) -> Option<String> {
        let key = referenced_keys(address).into_iter().next()?;
        let name = self.names.get(&key)?.as_deref()?;
        let up = "../".repeat(exported.matches('/').count());
        let suffix = address.find(['?', '#']).map_or("", |at| &address[at..]);
        Some(format!("{up}{FOLDER}/{}{suffix}", utf8_percent_encode(name, ESCAPED)))
    }

    /// Replaces the addresses of assets in a content by those of the files.
    pub(super) fn replace(&self, tree: &mut Tree, exported: &str) {
        tree.replace_addresses(|address| match address {
            Address::Link(address) | Address::Image(address) => self.relative(address, exported),
        });
    }
}
