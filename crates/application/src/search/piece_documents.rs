//! The documents that pieces should have: their texts in both views and all variants.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, ContentPieceId, TagId, VariantId, WorkspaceId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery};
use galley_storage::content_piece_view::View;
use galley_storage::custom_data_schemas::{self, EffectiveSchema};
use galley_storage::search_indexes::{DocumentTerms, Partition};
use galley_storage::{Tx, tags, variants, workspaces};

use super::{ANALYSIS, PieceTexts, language};
use crate::error::Error;

/// The limit on bytes of pieces that are read at once. A single piece may be larger.
const READ_SIZE: usize = 4 << 20;

/// A document that a piece should have.
#[derive(Debug)]
pub(super) struct NewDocument {
    pub(super) partition: Partition,
    pub(super) hash: Vec<u8>,
    /// The texts, until they are analysed; `None` for a document that is indexed already.
    pub(super) texts: Option<(PieceTexts, Option<galley_search::Language>)>,
    pub(super) terms: Option<DocumentTerms>,
}

/// The reader of the texts of pieces.
pub(super) struct PieceReader<'t, 'a> {
    tx: &'t Tx<'a>,
    workspace: WorkspaceId,
    language: Option<String>,
    revision: i64,
    /// The effective schemas of groups.
    schemas: HashMap<ContentGroupId, Option<EffectiveSchema>>,
    keys: HashMap<VariantId, String>,
    size: usize,
}

impl<'t, 'a> PieceReader<'t, 'a> {
    pub(super) async fn new(
        tx: &'t Tx<'a>,
        workspace: WorkspaceId,
        revision: i64,
    ) -> Result<Self, Error> {
        let found = workspaces::find(tx, workspace).await?;
        let language = found.and_then(|one| one.language).map(|tag| tag.as_str().to_owned());
        let (schemas, keys) = (HashMap::new(), HashMap::new());
        Ok(Self { tx, workspace, language, revision, schemas, keys, size: 0 })
    }

    /// Returns the documents of pieces. `None` if they are too large to be read at once.
    pub(super) async fn read(
        &mut self,
        ids: &[ContentPieceId],
    ) -> Result<Option<Vec<(ContentPieceId, NewDocument)>>, Error> {
        let mut found = Vec::new();
        for view in [ContentView::Current, ContentView::Published] {
            let pieces = self.list(ids, view, None).await?;
            let mut of_variants: BTreeMap<VariantId, Vec<ContentPieceId>> = BTreeMap::new();
            for (piece, _) in &pieces {
                for &variant in &piece.variants {
                    of_variants.entry(variant).or_default().push(piece.id);
                }
            }
            self.add(&mut found, view, None, pieces).await?;
            let variants: Vec<VariantId> = of_variants.keys().copied().collect();
            for variant in variants::find_all(self.tx, self.workspace, &variants).await? {
                self.keys.insert(variant.id, variant.key.as_str().to_owned());
            }
            for (variant, ids) in of_variants {
                if self.size > READ_SIZE && ids.len() > 1 {
                    break;
                }
                let pieces = self.list(&ids, view, Some(variant)).await?;
                self.add(&mut found, view, Some(variant), pieces).await?;
            }
            if self.size > READ_SIZE && ids.len() > 1 {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Lists pieces, until they are too large.
    async fn list(
        &mut self,
        ids: &[ContentPieceId],
        of: ContentView,
        variant: Option<VariantId>,
    ) -> Result<Vec<(ContentPiece, Option<String>)>, Error> {
        let filters = PieceFilters { ids: Some(ids.to_vec()), ..PieceFilters::default() };
        let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let view = View { of, variant, content: true, skips_custom_data: false };
        let query = PieceListQuery { filters, limit, view, ..PieceListQuery::default() };
        let left = (READ_SIZE + 1).saturating_sub(self.size).max(1);
        let (pieces, is_cut) =
            content_piece_list::list_until(self.tx, self.workspace, &query, left).await?;
        let sizes = pieces.iter().map(galley_storage::content_piece_view::size);
        self.size += sizes.sum::<usize>() + usize::from(is_cut) * READ_SIZE;
        Ok(pieces)
    }

    async fn add(
        &mut self,
        found: &mut Vec<(ContentPieceId, NewDocument)>,
        view: ContentView,
        variant: Option<VariantId>,
        pieces: Vec<(ContentPiece, Option<String>)>,
    ) -> Result<(), Error> {
        let tags: BTreeSet<TagId> =
            pieces.iter().flat_map(|(piece, _)| piece.fields.tags.iter().copied()).collect();
        let tags: Vec<TagId> = tags.into_iter().collect();
        let tags = tags::find_all(self.tx, self.workspace, &tags).await?;
        let tag = match variant {
            Some(variant) => self.keys.get(&variant).cloned(),
            None => self.language.clone(),
        };
        let language = language(tag.as_deref());
        let name = language.map_or("", galley_search::Language::tag);
        let analysis = format!("{ANALYSIS} {} {name}", self.revision);
        for (piece, tree) in pieces {
            let texts = PieceTexts::new(&piece, tree.as_deref());
            // A damaged piece must not keep the others from being indexed.
            let mut texts = texts.or_else(|error| {
                let (workspace, piece_id) = (self.workspace, piece.id);
                tracing::error!(%error, %workspace, piece = %piece_id, "a piece is indexed without content");
                PieceTexts::new(&piece, None)
            })?;
            let own = tags.iter().filter(|tag| piece.fields.tags.contains(&tag.id));
            texts.add_tags(own.map(|tag| tag.label.as_str()));
            if let Some(data) = &piece.fields.custom_data
                && let Some(schema) = self.schema_of(piece.content_group_id).await?
            {
                texts.add_custom_data(&schema.schema, data.as_str());
            }
            let partition = Partition { view, variant };
            let hash = texts.hash(&analysis);
            let texts = Some((texts, language));
            found.push((piece.id, NewDocument { partition, hash, texts, terms: None }));
        }
        Ok(())
    }

    async fn schema_of(
        &mut self,
        group: ContentGroupId,
    ) -> Result<Option<&EffectiveSchema>, Error> {
        if !self.schemas.contains_key(&group) {
            let schema = custom_data_schemas::effective(self.tx, self.workspace, group).await?;
            self.schemas
                .insert(group, schema.filter(|one| one.schema.as_str().contains("x-search")));
        }
        Ok(self.schemas.get(&group).and_then(Option::as_ref))
    }
}
