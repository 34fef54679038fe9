//! `galley export --format json`

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, bail};
use galley_application::{Environment, Error};
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, VariantId, WorkspaceId};
use galley_storage::content_piece_list::{self, PieceListQuery, Sort, SortKey};
use galley_storage::content_piece_view::View;
use galley_storage::{
    IdPage, Snapshot, Tx, content_piece_variants, import_sources, members, roles, tags, variants,
    webhooks, workspaces,
};
use serde::Serialize;

use super::encode::{bundle_piece, text};
use super::format::{self, FORMAT_VERSION};
use super::manifest::MANIFEST;
use super::revisions::{self, PartStates};
use super::trash;
use super::{assets, audit};
use crate::cli::content::ExportArguments;
use crate::export::folder::{ExportFolder, ExportKind};
use crate::group::GroupTree;
use crate::out::{counted, escape_for_terminal, say};
use crate::own_files::OwnFiles;
use crate::settings::{Settings, open_asset_store};
use crate::{progress, store};

/// The number of pieces in one read.
const PAGE: i64 = 32;

pub(crate) async fn export(
    settings: &Settings,
    arguments: &ExportArguments,
) -> anyhow::Result<ExitCode> {
    if arguments.group.is_some() {
        bail!("a bundle contains the whole workspace: omit --group");
    }
    if arguments.view == ContentView::Published {
        bail!("a bundle contains drafts and revisions, too: omit --view");
    }
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let workspace = store::workspace(&database, arguments.workspace.as_deref()).await?;
    let own = OwnFiles::of(Some(&settings.database()?));
    let mut folder = ExportFolder::open(&arguments.folder, ExportKind::Bundle, own)?;
    // One snapshot for the whole export, unaffected by concurrent writes.
    let snapshot = database.snapshot().await?;
    let variants = write_manifest(&snapshot, workspace, &mut folder).await?;
    let bar = progress::bar("pieces", 0);
    let (mut count, mut after) = (0_u64, None);
    loop {
        let query = PieceListQuery {
            sort: Sort { key: SortKey::CreatedAt, descending: false },
            after: after.take(),
            limit: PAGE,
            view: View { variant: None, content: true, ..View::default() },
            ..PieceListQuery::default()
        };
        let page = snapshot.read("export.bundle", async move |tx: &Tx<'_>| {
            let mut page = Vec::new();
            for viewed in content_piece_list::list(tx, workspace, &query).await? {
                let id = viewed.0.id;
                let overrides = content_piece_variants::of_piece(tx, workspace, id).await?;
                let sources = import_sources::list(tx, workspace, &[id]).await?;
                page.push((viewed, overrides, sources));
            }
            Ok::<_, Error>(page)
        });
        let page = page.await?;
        let Some(((last, _), ..)) = page.last() else { break };
        after = Some(Sort { key: SortKey::CreatedAt, descending: false }.position(last));
        bar.inc_length(page.len() as u64);
        for (viewed, overrides, sources) in page {
            let (id, content) = (viewed.0.id, viewed.1.as_deref().unwrap_or_default());
            let states = PartStates::of(&viewed.0, content, &overrides);
            let has_revisions = viewed.0.has_revisions();
            let piece = bundle_piece(viewed, overrides, sources)?;
            folder.write(&format!("pieces/{}/{id}.json", revisions::shelf(id)), &text(&piece)?);
            if has_revisions {
                revisions::export(&snapshot, workspace, id, states, &variants, &mut folder).await?;
            }
            count += 1;
            bar.inc(1);
        }
    }
    trash::export(&snapshot, workspace, &variants, &mut folder).await?;
    audit::export(&snapshot, workspace, &mut folder).await?;
    let files = open_asset_store(&settings.asset_store()?)?;
    assets::export(&snapshot, workspace, &files, &mut folder).await?;
    bar.finish_and_clear();
    drop(snapshot);
    database.close().await;
    let (written, removed, problems) = folder.finish()?;
    let (pieces, files) = (counted(count, "piece"), counted(written as u64, "file"));
    say!("{pieces}: {files} written, {removed} removed");
    say!("To restore them in another store: galley import {}", arguments.folder.display());
    for problem in &problems {
        eprintln!("{}", escape_for_terminal(problem));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the manifest and all resources except the pieces. Returns the variants.
async fn write_manifest(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    folder: &mut ExportFolder,
) -> anyhow::Result<Vec<VariantId>> {
    let read = async move |tx: &Tx<'_>| {
        let found = workspaces::find(tx, workspace).await?;
        let all = IdPage::default();
        let roles = roles::list(tx, workspace, &all).await?;
        let members = members::list(tx, workspace, &all).await?;
        let tags = tags::list(tx, workspace, None, &all).await?;
        let variants = variants::list(tx, workspace, &all).await?;
        let groups = GroupTree::read(tx, workspace).await?.groups;
        let webhooks =
            webhooks::list(tx, workspace, &webhooks::WebhookListQuery::default()).await?;
        Ok::<_, Error>((found, roles, members, tags, variants, groups, webhooks))
    };
    let (found, roles, members, tags, variants, groups, webhooks) =
        snapshot.read("export.manifest", read).await?;
    let found = found.context("the workspace was deleted")?;
    let manifest = format::Manifest {
        galley_bundle: FORMAT_VERSION,
        workspace: format::BundleWorkspace {
            id: found.id,
            name: found.name,
            description: found.description,
            logo: found.logo,
            language: found.language,
        },
    };
    folder.write(MANIFEST, &text(&manifest)?);
    folder.write("roles.json", &list::<format::BundleRole>(roles)?);
    folder.write("members.json", &list::<format::BundleMember>(members)?);
    folder.write("tags.json", &list::<format::BundleTag>(tags)?);
    let variant_ids = variants.iter().map(|variant| variant.id).collect();
    folder.write("variants.json", &list::<format::BundleVariant>(variants)?);
    let groups = groups.into_iter().map(|(group, ancestor)| format::BundleGroup {
        id: group.id,
        name: group.name,
        unique_slugs: group.unique_slugs,
        custom_data_schema: group.custom_data_schema,
        preview_url: group.preview_url,
        ancestor,
    });
    folder.write("groups.json", &text(&parents_first(groups.collect()))?);
    folder.write("webhooks.json", &list::<format::BundleWebhook>(webhooks)?);
    Ok(variant_ids)
}

/// Returns the JSON text of a list of resources.
fn list<T: Serialize>(resources: Vec<impl Into<T>>) -> anyhow::Result<String> {
    text(&resources.into_iter().map(Into::into).collect::<Vec<T>>())
}

/// Sorts groups by their depth, and then by their ids.
fn parents_first(groups: Vec<format::BundleGroup>) -> Vec<format::BundleGroup> {
    let parents: BTreeMap<ContentGroupId, Option<ContentGroupId>> =
        groups.iter().map(|group| (group.id, group.ancestor)).collect();
    let depth = |group: &format::BundleGroup| {
        let up = |id: &ContentGroupId| parents.get(id).copied().flatten();
        std::iter::successors(group.ancestor, up).count()
    };
    let mut groups: Vec<_> = groups.into_iter().map(|group| (depth(&group), group)).collect();
    groups.sort_by_key(|(depth, group)| (*depth, group.id));
    groups.into_iter().map(|(_, group)| group).collect()
}
