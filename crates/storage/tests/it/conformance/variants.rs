//! Calls of the functions of variants, overrides and import sources.

use galley_domain::content_piece::{ContentPiece, ContentPieceOverrides, Slug, Title};
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::publication::ContentView;
use galley_domain::tag::Tag;
use galley_domain::text::ShortText;
use galley_domain::variant::{VariantKey, VariantRef};
use galley_domain::{TagId, VariantId, WorkspaceId, WorkspaceMemberId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery};
use galley_storage::content_piece_view::{self, View};
use galley_storage::import_sources::{self, PieceSource};
use galley_storage::{
    Error, IdPage, WriteTx, content_piece_references, content_piece_variants, content_pieces, tags,
    variants,
};
use galley_testing::{TestStore, on_both_engines};

use super::content_pieces::{lists, spreads};
use super::{ConformanceFixture, everything, published, tag, variant};
use crate::people;
use crate::store::{NOW, OpenStore};

/// Exercises the overrides of `piece` in variants, until the variant or a row that they refer to is
/// deleted.
pub(super) async fn in_variant(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    piece: &ContentPiece,
    member: WorkspaceMemberId,
    [own_tag, tag]: [&Tag; 2],
) -> Result<(), Error> {
    let workspace = open.workspace;
    let exercise = OverridesExercise {
        tx,
        workspace,
        piece,
        variants: make_variants(tx, workspace).await?,
        tag: tag.id,
        member,
    };
    exercise.overrides().await?;
    for (slug, tag, count) in [
        (Some("erstes"), None, 1),
        (Some("first"), None, 0),
        (None, Some(tag.id), 1),
        (None, Some(own_tag.id), 0),
    ] {
        let slug = slug.map(str::to_owned);
        let tags = Vec::from_iter(tag);
        let filters = PieceFilters { slug, tags, ..PieceFilters::default() };
        let query = PieceListQuery { filters, view: exercise.german_view(), ..everything() };
        let found = content_piece_list::list(tx, workspace, &query).await?;
        assert_eq!(found.len(), count, "{query:?}");
    }
    // In French only the title is overridden, so filters find the piece's own slug and tag.
    let french = exercise.variants[1];
    lists(tx, open, own_tag, View { variant: Some(french), ..View::default() }).await?;
    published::publish_in_variant(tx, open, own_tag, piece.id, french, member).await?;
    let sources = exercise.sources().await?;
    exercise.deletion(&sources).await?;
    Box::pin(spreads(tx, open)).await
}

/// Creates a German and a French variant.
async fn make_variants(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<[VariantId; 2], Error> {
    let mut german = variant("de");
    let french = variant("fr");
    for variant in [&german, &french] {
        variants::insert(tx, workspace, variant, NOW).await?;
    }
    german.description = Some(ShortText::parse("German").unwrap());
    variants::update(tx, workspace, &german).await?;
    assert_eq!(variants::find(tx, workspace, german.id).await?, Some(german.clone()));
    assert_eq!(variants::find(tx, WorkspaceId::new(1), german.id).await?, None);
    let found = variants::find_for_update(tx, workspace, german.id).await?;
    assert_eq!(found, Some(german.clone()));
    let by_key = VariantRef::Key(VariantKey::parse("fr").unwrap());
    let found = variants::find_named(tx, workspace, &by_key).await?;
    assert_eq!(found, Some(french.clone()));
    let found = variants::find_named_for_override(tx, workspace, &by_key).await?;
    assert_eq!(found, Some(french.clone()));
    let listed = variants::list(tx, workspace, &IdPage::default()).await?;
    assert_eq!(listed, [german.clone(), french.clone()]);
    Ok([german.id, french.id])
}

/// A piece, a German and a French variant, and resources that the German overrides refer to.
struct OverridesExercise<'a, 'tx> {
    tx: &'a WriteTx<'tx>,
    workspace: WorkspaceId,
    piece: &'a ContentPiece,
    variants: [VariantId; 2],
    tag: TagId,
    member: WorkspaceMemberId,
}

impl OverridesExercise<'_, '_> {
    fn german_view(&self) -> View {
        View { variant: Some(self.variants[0]), content: true, ..View::default() }
    }

    async fn find(&self, variant: VariantId) -> Result<Option<ContentPieceOverrides>, Error> {
        content_piece_variants::find(self.tx, self.workspace, self.piece.id, variant).await
    }

    async fn overrides(&self) -> Result<(), Error> {
        let Self { tx, workspace, piece, variants: [german, french], tag, member } = *self;
        assert_eq!(self.find(german).await?, None);
        let titled = ContentPieceOverrides {
            title: Some(Title::parse("Titel").unwrap()),
            ..ContentPieceOverrides::default()
        };
        let listed = ContentPieceOverrides {
            slug: Some(Slug::parse("erstes").unwrap()),
            date: Some(NOW),
            tags: Some(vec![tag]),
            members: Some(vec![member]),
            ..titled.clone()
        };
        for (variant, overrides) in [(german, &titled), (german, &listed), (french, &titled)] {
            let before = self.find(variant).await?.unwrap_or_default();
            content_piece_variants::update(tx, workspace, piece.id, variant, &before, overrides)
                .await?;
            assert_eq!(self.find(variant).await?.as_ref(), Some(overrides));
        }
        let seen =
            content_piece_view::find_visible(tx, workspace, piece.id, None, self.german_view())
                .await?;
        let german_piece = piece.clone().with_overrides(listed.clone());
        assert_eq!(seen, Some((german_piece.clone(), Some("{}".to_owned()))));
        let set = async |tree| {
            content_piece_variants::update_content(tx, workspace, piece.id, german, None, tree)
                .await
        };
        set("{}").await?;
        set("{\"b\":2}").await?;
        let content = content_pieces::find_content(tx, workspace, piece.id, Some(german)).await?;
        assert_eq!(content.as_deref(), Some("{\"b\":2}"));
        let own = content_piece_variants::find_content(tx, workspace, piece.id, german).await?;
        assert_eq!(own.as_deref(), Some("{\"b\":2}"));
        let own = content_piece_variants::find_content(tx, workspace, piece.id, french).await?;
        assert_eq!(own, None);
        let overrides = content_piece_variants::of_piece(tx, workspace, piece.id).await?;
        let mut expected = vec![
            (german, listed.clone(), Some("{\"b\":2}".to_owned())),
            (french, titled.clone(), None),
        ];
        expected.sort_by_key(|(variant, ..)| *variant);
        assert_eq!(overrides, expected);
        let before = content_pieces::find(tx, workspace, piece.id).await?.expect("it is there");
        let ids = content_piece_variants::ids_of_piece(tx, workspace, piece.id).await?;
        assert_eq!(ids, expected.iter().map(|(variant, ..)| *variant).collect::<Vec<_>>());
        let piece = ContentPiece { variants: ids, ..before.clone() };
        content_pieces::update(tx, workspace, &before, &piece).await?;
        assert_eq!(content_pieces::find(tx, workspace, piece.id).await?.as_ref(), Some(&piece));
        for (variant, count) in [(german, 1), (VariantId::new(1), 0)] {
            let overridden_variant = Some(variant);
            let filters = PieceFilters { overridden_variant, ..PieceFilters::default() };
            let query = PieceListQuery { filters, ..everything() };
            let found = content_piece_list::list(tx, workspace, &query).await?;
            assert_eq!(found.len(), count, "{query:?}");
        }
        let seen =
            content_piece_view::find_visible(tx, workspace, piece.id, None, self.german_view())
                .await?;
        let german_piece = ContentPiece { variants: piece.variants, ..german_piece };
        assert_eq!(seen, Some((german_piece, Some("{\"b\":2}".to_owned()))));
        Ok(())
    }

    async fn sources(&self) -> Result<[PieceSource; 2], Error> {
        let Self { tx, piece, workspace, .. } = *self;
        let french = self.variants[1];
        let source = |hash: &str, variant| PieceSource {
            piece: piece.id,
            variant,
            source: ImportSource {
                source_hash: SourceHash::parse(hash).unwrap(),
                imported_hash: SourceHash::parse("imported").unwrap(),
            },
        };
        let sources = [source("a", None), source("b", Some(french))];
        for one in [source("first", None), source("first", Some(french))].iter().chain(&sources) {
            import_sources::save(tx, workspace, one).await?;
        }
        let elsewhere = WorkspaceId::new(1);
        assert_eq!(import_sources::list(tx, elsewhere, &[piece.id]).await?, []);
        let mut listed = import_sources::list(tx, workspace, &[piece.id]).await?;
        listed.sort_by_key(|one| one.variant);
        assert_eq!(listed, sources);
        Ok(sources)
    }

    async fn version(&self) -> Result<i64, Error> {
        let found = content_pieces::find(self.tx, self.workspace, self.piece.id).await?;
        Ok(found.expect("it is there").version)
    }

    /// Deletes the member, the tag, and then the variants.
    async fn deletion(&self, sources: &[PieceSource]) -> Result<(), Error> {
        let Self { tx, workspace, piece, variants: [german, french], tag, member } = *self;
        let before = self.version().await?;
        content_piece_references::remove_member(tx, workspace, member).await?;
        assert_eq!(self.version().await?, before + 1);
        let left = self.find(german).await?.expect("it is there");
        assert_eq!(left.members, Some(Vec::new()), "an empty list of its own");
        assert!(tags::delete(tx, workspace, tag).await?);
        assert_eq!(self.version().await?, before + 2);
        assert_eq!(self.find(german).await?.expect("it is there").tags, Some(Vec::new()));
        let nothing = ContentPieceOverrides::default();
        let fields = self.find(german).await?.expect("it is there");
        content_piece_variants::update(tx, workspace, piece.id, german, &fields, &nothing).await?;
        assert_eq!(self.find(german).await?, None);
        let found = variants::find_all(tx, workspace, &[german, french, VariantId::new(1)]).await?;
        assert_eq!(found.len(), 2);
        // Deleting a variant raises the piece's version, even if only the content is overridden.
        assert!(variants::delete(tx, workspace, german).await?);
        assert!(!variants::delete(tx, workspace, german).await?);
        assert_eq!(self.version().await?, before + 3);
        content_piece_variants::delete_content(tx, workspace, piece.id, german, None).await?;
        assert!(variants::delete(tx, workspace, french).await?);
        assert_eq!(self.version().await?, before + 4);
        assert_eq!(import_sources::list(tx, workspace, &[piece.id]).await?, sources[..1]);
        assert_eq!(self.find(french).await?, None);
        Ok(())
    }
}

#[on_both_engines]
async fn deleting_a_piece_deletes_its_variant_overrides(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, group) = (open.workspace, open.group);
    let piece = open.piece("first", None);
    let fill = async move |tx: &WriteTx<'_>| {
        let (german, red) = (variant("de"), tag("red"));
        let member = people::exercise(tx, workspace, group).await?;
        variants::insert(tx, workspace, &german, NOW).await?;
        tags::insert(tx, workspace, &red, NOW).await?;
        content_pieces::insert(tx, workspace, &piece, "{}").await?;
        let overrides = ContentPieceOverrides {
            tags: Some(vec![red.id]),
            members: Some(vec![member]),
            ..ContentPieceOverrides::default()
        };
        let (id, variant) = (piece.id, german.id);
        let overrides = (variant, overrides, Some("[]".to_owned()));
        let view = ContentView::Current;
        content_piece_variants::insert(tx, workspace, view, id, &overrides).await?;
        Ok(piece.clone())
    };
    let piece = open.database.write::<_, Error, _>("fill", fill).await.unwrap();
    let tables = [
        "content_piece_variants",
        "content_piece_variant_contents",
        "content_piece_variant_tags",
        "content_piece_variant_members",
    ];
    for table in tables {
        assert_eq!(open.count(table).await, 1, "{table}");
    }
    let delete = async move |tx: &WriteTx<'_>| content_pieces::delete(tx, workspace, &piece).await;
    open.database.write::<_, Error, _>("delete", delete).await.unwrap();
    for table in tables {
        assert_eq!(open.count(table).await, 0, "{table}");
    }
}
