//! The revisions of a bundle: for each piece, files of JSON lines, latest first.
//!
//! A line has the values before the change. The latest state is in the piece's own file, so each
//! earlier state follows from the lines before it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use galley_domain::content_piece::{ContentPiece, PieceField};
use galley_domain::revision::{PartState, Revision};
use galley_domain::{ContentPieceId, VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::{self, COMPLETE_EVERY, StoredRevision, Undo};
use galley_storage::content_piece_variants::Override;
use galley_storage::{Snapshot, Tx};

use super::format::{BundleOverride, BundleRevision, from_json};
use super::sanitize::{FILE_SIZE_LIMIT, sanitized_override};
use crate::export::folder::ExportFolder;

/// The size of a file's text in bytes from which the following lines go to the next file.
const FILE_SIZE: usize = 8 << 20;

/// The limit on the number of a revision. It leaves room for as many later changes, as identifiers
/// have 48 bits of it.
pub(super) const NUMBER_LIMIT: i64 = 1 << 40;

/// The number of revisions in one read.
const PAGE: i64 = 16;

/// The states of the parts of a piece: of the piece itself, and of its overrides in variants.
#[derive(Debug)]
pub(super) struct PartStates(HashMap<Option<VariantId>, CountedState>);

/// A state, and the number of changes that were undone to get it.
#[derive(Debug, Default)]
struct CountedState {
    state: PartState,
    count: i64,
}

impl PartStates {
    /// Returns the latest states of a piece.
    pub(super) fn of(piece: &ContentPiece, content: &str, overrides: &[Override]) -> Self {
        let own =
            PartState { fields: piece.fields.clone().into(), content: Some(content.to_owned()) };
        let variants = overrides.iter().map(|(variant, fields, content)| {
            (Some(*variant), PartState { fields: fields.clone(), content: content.clone() })
        });
        let counted = |(part, state)| (part, CountedState { state, count: 0 });
        Self(variants.chain([(None, own)]).map(counted).collect())
    }

    fn part(&mut self, variant: Option<VariantId>) -> &mut CountedState {
        self.0.entry(variant).or_default()
    }
}

/// Returns the folder of a piece's files. Ids begin with the time, but their last characters are
/// evenly distributed.
pub(super) fn shelf(id: ContentPieceId) -> String {
    let id = id.to_string();
    id[id.len() - 2..].to_owned()
}

/// Writes the revisions of a piece. Those of deleted variants, whose latest state is unknown, are
/// omitted.
pub(super) async fn export(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    mut states: PartStates,
    variants: &[VariantId],
    folder: &mut ExportFolder,
) -> anyhow::Result<()> {
    let (mut text, mut number_of_file) = (String::new(), 1);
    let mut before = None;
    loop {
        let read = async move |tx: &Tx<'_>| {
            content_piece_revisions::list_stored(tx, workspace, piece, before, PAGE).await
        };
        let page = snapshot.read("export.revisions", read).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.revision.number);
        for stored in &page {
            let revision = &stored.revision;
            if revision.variant.is_some_and(|variant| !variants.contains(&variant)) {
                continue;
            }
            let CountedState { state, .. } = states.part(revision.variant);
            stored.undo.apply(state)?;
            text += &serde_json::to_string(&line(stored, state)?)?;
            text.push('\n');
            if text.len() >= FILE_SIZE {
                folder.write(&file_name(piece, number_of_file), &text);
                number_of_file += 1;
                text.clear();
            }
        }
    }
    if !text.is_empty() {
        folder.write(&file_name(piece, number_of_file), &text);
    }
    Ok(())
}

fn file_name(piece: ContentPieceId, number: u32) -> String {
    format!("revisions/{}/{piece}.{number}.jsonl", shelf(piece))
}

fn line(stored: &StoredRevision, before: &PartState) -> anyhow::Result<BundleRevision> {
    let revision = &stored.revision;
    let mut changed = PartState::default();
    for &field in &revision.fields {
        changed.set_text(field, before.text(field).as_deref())?;
    }
    let content = changed.content.map(|tree| from_json(tree.as_bytes())).transpose()?;
    let before = BundleOverride::new(changed.fields, content);
    Ok(BundleRevision {
        number: revision.number,
        variant: revision.variant,
        created_at: revision.created_at,
        created_by: revision.created_by,
        origin: revision.origin.as_str().to_owned(),
        fields: revision.fields.iter().map(|field| field.as_str().to_owned()).collect(),
        note: revision.note.clone(),
        hidden: stored.is_hidden,
        published: stored.is_published,
        before,
    })
}

/// Reads the revisions of a piece, from the lowest number on. `states` are those of the piece as it
/// is restored.
pub(super) fn read(
    bundle: &Path,
    piece: ContentPieceId,
    mut states: PartStates,
) -> Result<Vec<StoredRevision>, String> {
    let mut revisions: Vec<StoredRevision> = Vec::new();
    for path in files(bundle, piece) {
        let wrong = |line: usize, error: &dyn std::fmt::Display| {
            format!(", with its revisions in {}:{line}: {error}", path.display())
        };
        let metadata = fs::symlink_metadata(&path).map_err(|error| wrong(0, &error))?;
        if !metadata.is_file() || metadata.len() > FILE_SIZE_LIMIT {
            return Err(wrong(0, &format!("is not a regular file of {FILE_SIZE_LIMIT} bytes")));
        }
        let text = fs::read_to_string(&path).map_err(|error| wrong(0, &error))?;
        for (index, line) in text.lines().enumerate() {
            let wrong = |error: &dyn std::fmt::Display| wrong(index + 1, error);
            let line: BundleRevision = from_json(line.as_bytes()).map_err(|error| wrong(&error))?;
            let stored = stored(line, &mut states).map_err(|error| wrong(&error))?;
            let is_ordered =
                revisions.last().is_none_or(|later| later.revision.number > stored.revision.number);
            if !is_ordered || !(1..NUMBER_LIMIT).contains(&stored.revision.number) {
                return Err(wrong(&"the numbers must be positive, and the latest must come first"));
            }
            revisions.push(stored);
        }
    }
    revisions.reverse();
    set_depths(&mut revisions);
    Ok(revisions)
}

/// Returns the files of a piece's revisions, latest first. Links to folders are not followed.
fn files(bundle: &Path, piece: ContentPieceId) -> impl Iterator<Item = PathBuf> {
    let bundle = bundle.to_owned();
    let folder = bundle.join("revisions");
    let is_linked = folder.is_symlink() || folder.join(shelf(piece)).is_symlink();
    let path = move |number: u32| bundle.join(file_name(piece, number));
    (1..).map(path).take_while(move |path| !is_linked && path.exists())
}

/// Returns the revision of a line, and sets the state of its part to that before it.
fn stored(line: BundleRevision, states: &mut PartStates) -> Result<StoredRevision, String> {
    let names = line.fields.iter().map(|name| name.parse::<PieceField>());
    let mut fields: Vec<_> =
        names.collect::<Result<_, _>>().map_err(|invalid| format!("fields {invalid}"))?;
    fields.sort_unstable();
    fields.dedup();
    let (overrides, content) = sanitized_override(line.before)?;
    let given = PartState { fields: overrides, content };
    let CountedState { state, count } = states.part(line.variant);
    let mut before = state.clone();
    for &field in &fields {
        before.set_text(field, given.text(field).as_deref()).map_err(|error| error.to_string())?;
    }
    let is_complete = before.content.is_some() && before.fields.clone().into_fields().is_some();
    if line.variant.is_none() && !is_complete {
        return Err("a required field has no value before the change".to_owned());
    }
    *count += 1;
    let is_complete = *count % COMPLETE_EVERY == 0;
    let undo =
        if is_complete { Undo::complete(&before) } else { Undo::of(&before, state, &fields) };
    let undo = undo.map_err(|error| error.to_string())?;
    let origin = line.origin.parse().map_err(|invalid| format!("origin {invalid}"))?;
    *state = before;
    let revision = Revision {
        number: line.number,
        variant: line.variant,
        created_at: line.created_at,
        created_by: line.created_by,
        origin,
        fields,
        note: line.note,
        is_autosave: false,
    };
    let depth = i64::from(!is_complete);
    let (is_hidden, is_published) = (line.hidden, line.published);
    Ok(StoredRevision { revision, is_hidden, is_published, event_due_at: None, depth, undo })
}

/// Counts the revisions of each part since the last one with all values.
fn set_depths(revisions: &mut [StoredRevision]) {
    let mut depths: HashMap<Option<VariantId>, i64> = HashMap::new();
    for stored in revisions {
        let depth = depths.entry(stored.revision.variant).or_default();
        *depth = if stored.depth == 0 { 0 } else { *depth + 1 };
        stored.depth = *depth;
    }
}
