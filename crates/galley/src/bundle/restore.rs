//! `galley import` of a bundle: restores the workspace in another store.
//!
//! Resources whose id exists already stay as they are. So a restart continues an interrupted
//! restore, and a repeated restore changes nothing.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use galley_application::operations::import_sources::{self, NewSource};
use galley_application::operations::{content_groups, content_pieces, restored_version};
use galley_application::{Environment, Error, Scope, sanitize};
use galley_content::{ContentLimits, Tree};
use galley_domain::content_piece::{ContentPiece, Description, REFERENCES_MAX};
use galley_domain::event::EventType;
use galley_domain::import_source::ImportSource;
use galley_domain::people::{EmailAddress, Username};
use galley_domain::permission::{PermissionSet, Resource};
use galley_domain::role::BaseType;
use galley_domain::tag::Tag;
use galley_domain::variant::{Variant, VariantRef};
use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{Permission, Timestamp, UserId, WorkspaceId, role};
use galley_storage::content_piece_variants::Override;
use galley_storage::members::Member;
use galley_storage::users::{self, User};
use galley_storage::{
    self as storage, Database, DatabaseUrl, Failure, Role, WriteTx, members, roles, tags, variants,
    webhooks, workspaces,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use walkdir::WalkDir;

use super::format::{self, FORMAT_VERSION};
use super::manifest::MANIFEST;
use crate::cli::ImportArguments;
use crate::export::folder;
use crate::out::{counted, escape_for_terminal, say};
use crate::own_files::OwnFiles;
use crate::settings::Settings;
use crate::{progress, store};

/// The number of pieces in one transaction.
const BATCH: usize = 16;

/// The size limit of a tree in bytes, as for one in a request.
const TREE_SIZE_LIMIT: usize = 16 * 1024 * 1024;

/// The size limit of a file.
const FILE_SIZE_LIMIT: u64 = 64 * 1024 * 1024;

pub(crate) async fn restore(
    settings: &Settings,
    arguments: &ImportArguments,
    folder: &Path,
) -> anyhow::Result<ExitCode> {
    if arguments.url.is_some() {
        bail!(
            "a bundle is restored with its ids, which is possible only in the database itself: \
             omit --url"
        );
    }
    let has_other = arguments.groups
        || arguments.no_drafts
        || arguments.overwrite
        || arguments.report.is_some()
        || arguments.group.is_some()
        || arguments.workspace.is_some()
        || !arguments.variants.is_empty()
        || !arguments.tags.is_empty()
        || arguments.sources.len() > 1;
    if has_other {
        bail!("a bundle contains a whole workspace: name only its folder, without other flags");
    }
    let environment = Environment::default();
    let frame = Arc::new(WorkspaceManifest::read(folder, restored_version(&environment))?);
    let (files, missing) = pieces(folder)?;
    let own = OwnFiles::of(Some(&settings.database()?));
    if let Some(file) = files.iter().find(|file| own.includes(file)) {
        bail!("{} belongs to the database that is restored into", file.display());
    }
    if arguments.dry_run {
        return check_manifest(settings, &environment, frame, files.len(), &missing).await;
    }
    let database = store::open(settings, &environment, Role::Command).await?;
    let workspace = frame.workspace.id;
    let (of_frame, own) = (environment.clone(), Arc::clone(&frame));
    let keep = async move |tx: &WriteTx<'_>| own.keep(tx, &of_frame).await;
    database.write("bundle.frame", keep).await.context("nothing was restored")?;
    let bar = progress::bar("pieces", files.len() as u64);
    let mut report = RestoreReport { problems: missing, ..RestoreReport::default() };
    for some in files.chunks(BATCH) {
        let (mut read, mut names) = (Vec::new(), Vec::new());
        for path in some {
            match piece(path) {
                Ok(one) => {
                    read.push(one);
                    names.push(path);
                }
                Err(problem) => report.problems.push(format!("{}{problem}", path.display())),
            }
        }
        let scope = Scope::whole(workspace);
        report.keep(&database, &environment, &scope, read, &names).await?;
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    // The webhooks are written last, so that restored pieces don't trigger them.
    let (now, own) = (environment.now(), frame);
    let keep = async move |tx: &WriteTx<'_>| own.insert_missing_webhooks(tx, now).await;
    let webhooks = database.write("bundle.webhooks", keep).await.map_err(interrupted)?;
    database.close().await;
    let RestoreReport { restored, there, problems } = report;
    say!(
        "Restored {workspace}: {}, {there} existed already, {} with problems",
        counted(restored as u64, "piece"),
        problems.len()
    );
    if webhooks > 0 {
        say!(
            "{} disabled, as the bundle contains no secrets: create each again with its secret, or \
             enable it to send unsigned requests.",
            counted(webhooks as u64, "webhook")
        );
    }
    say!("To create a token: galley token create --workspace {workspace}");
    Ok(exit_code(&problems))
}

/// Prints the problems and returns the exit code.
fn exit_code(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("{}", escape_for_terminal(problem));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks if everything except the pieces can be written, and rolls back.
async fn check_manifest(
    settings: &Settings,
    environment: &Environment,
    frame: Arc<WorkspaceManifest>,
    pieces: usize,
    missing: &[String],
) -> anyhow::Result<ExitCode> {
    let workspace = frame.workspace.id;
    // A missing database counts as an empty one.
    if !matches!(settings.database()?, DatabaseUrl::Sqlite(path) if !path.exists()) {
        let database = store::open_existing(settings, environment).await?;
        let of_frame = environment.clone();
        let keep = async move |tx: &WriteTx<'_>| {
            frame.keep(tx, &of_frame).await?;
            Err::<(), _>(RestoreError::TriedOut)
        };
        let tried = database.write("bundle.frame", keep).await;
        database.close().await;
        if let Err(error) = tried
            && !matches!(error, RestoreError::TriedOut)
        {
            return Err(error).context("nothing would be restored");
        }
    }
    let pieces = counted(pieces as u64, "piece");
    say!("{workspace} is valid except its pieces, which were not checked: {pieces}");
    Ok(exit_code(missing))
}

/// The reason why the workspace's data was not written.
#[derive(Debug, thiserror::Error)]
enum RestoreError {
    /// An error about a file and item.
    #[error("{0}: {1}")]
    Of(String, Error),
    /// An error message.
    #[error("{0}")]
    Because(String),
    /// An error without a file and item.
    #[error(transparent)]
    Other(#[from] Error),
    /// The rollback of a dry run.
    #[error("the check was rolled back")]
    TriedOut,
}

impl From<storage::Error> for RestoreError {
    fn from(error: storage::Error) -> Self {
        Self::Other(error.into())
    }
}

impl Failure for RestoreError {
    fn storage_error(&self) -> Option<&storage::Error> {
        match self {
            Self::Of(_, error) | Self::Other(error) => error.storage_error(),
            Self::Because(_) | Self::TriedOut => None,
        }
    }
}

/// Adds the file and item to an error.
fn of<E: Into<Error>>(file: &str, id: impl std::fmt::Display) -> impl FnOnce(E) -> RestoreError {
    move |error| RestoreError::Of(format!("{file}: {id}"), error.into())
}

/// A workspace's data except the pieces.
struct WorkspaceManifest {
    workspace: format::BundleWorkspace,
    roles: Vec<role::Role>,
    members: Vec<format::BundleMember>,
    tags: Vec<Tag>,
    variants: Vec<Variant>,
    groups: Vec<format::BundleGroup>,
    webhooks: Vec<Webhook>,
}

impl WorkspaceManifest {
    fn read(folder: &Path, version: i64) -> anyhow::Result<Self> {
        let manifest: format::Manifest = file(&folder.join(MANIFEST))?;
        if manifest.galley_bundle > FORMAT_VERSION {
            bail!("{} was exported by a newer galley", folder.display());
        }
        let mut read_roles = Vec::new();
        for one in file::<Vec<format::BundleRole>>(&folder.join("roles.json"))? {
            let place = || format!("{}: {}", folder.join("roles.json").display(), one.id);
            let permissions: Result<PermissionSet, _> =
                one.permissions.iter().map(|name| name.parse::<Permission>()).collect();
            let base_type = one.base_type.as_deref().map(str::parse).transpose();
            read_roles.push(role::Role {
                id: one.id,
                name: one.name.clone(),
                description: one.description.clone(),
                permissions: permissions.with_context(place)?,
                base_type: base_type
                    .map_err(|invalid| anyhow::anyhow!("baseType {invalid}"))
                    .with_context(place)?,
                version,
            });
        }
        let roles_place = folder.join("roles.json");
        check_unique(&roles_place, read_roles.iter().map(|role| role.id))?;
        check_base_types(&roles_place, &read_roles)?;
        let members_place = folder.join("members.json");
        let read_members: Vec<format::BundleMember> = file(&members_place)?;
        check_unique(&members_place, read_members.iter().map(|one| one.id))?;
        for one in &read_members {
            if one.user.is_none() && one.invited_email.is_none() {
                bail!("{}: {}: has neither user nor invitedEmail", members_place.display(), one.id);
            }
        }
        let admin = read_roles.iter().filter(|role| role.is_admin()).map(|role| role.id);
        let admin: Vec<_> = admin.collect();
        if !read_members.iter().any(|one| one.user.is_some() && admin.contains(&one.role_id)) {
            bail!("{}: no member with a user is an Admin", folder.join("members.json").display());
        }
        for one in &read_members {
            if !read_roles.iter().any(|role| role.id == one.role_id) {
                let place = folder.join("members.json");
                bail!("{}: {}: the role {} does not exist", place.display(), one.id, one.role_id);
            }
        }
        let groups: Vec<format::BundleGroup> = file(&folder.join("groups.json"))?;
        check_unique(&folder.join("groups.json"), groups.iter().map(|group| group.id))?;
        let mut read_tags = Vec::new();
        for one in file::<Vec<format::BundleTag>>(&folder.join("tags.json"))? {
            let color = one.color.parse().map_err(|invalid| {
                anyhow::anyhow!(
                    "{}: {}: color {invalid}",
                    folder.join("tags.json").display(),
                    one.id
                )
            })?;
            read_tags.push(Tag { id: one.id, label: one.label, color, version });
        }
        check_unique(&folder.join("tags.json"), read_tags.iter().map(|tag| tag.id))?;
        let read_variants = file::<Vec<format::BundleVariant>>(&folder.join("variants.json"))?;
        check_unique(
            &folder.join("variants.json"),
            read_variants.iter().map(|variant| variant.id),
        )?;
        let read_webhooks = read_webhooks(&folder.join("webhooks.json"), &groups, version)?;
        check_unique(
            &folder.join("webhooks.json"),
            read_webhooks.iter().map(|webhook| webhook.id),
        )?;
        Ok(Self {
            workspace: manifest.workspace,
            roles: read_roles,
            members: read_members,
            tags: read_tags,
            variants: read_variants
                .into_iter()
                .map(|one| Variant {
                    id: one.id,
                    key: one.key,
                    label: one.label,
                    description: one.description,
                    version,
                })
                .collect(),
            groups,
            webhooks: read_webhooks,
        })
    }

    /// Inserts the resources that don't exist yet, except the webhooks.
    async fn keep(&self, tx: &WriteTx<'_>, environment: &Environment) -> Result<(), RestoreError> {
        let (id, now) = (self.workspace.id, environment.now());
        let scope = Scope::whole(id);
        if workspaces::find(tx, id).await?.is_none() {
            workspaces::insert(tx, id, self.workspace.name.as_str(), now).await?;
            if let Some(mut workspace) = workspaces::find(tx, id).await? {
                workspace.description = self.workspace.description.clone();
                workspace.logo = self.workspace.logo.clone();
                workspaces::update(tx, &workspace).await?;
            }
        }
        workspaces::lock(tx, id).await?;
        for role in &self.roles {
            if roles::find(tx, id, role.id).await?.is_none() {
                roles::insert(tx, id, role, now).await.map_err(of("roles.json", role.id))?;
            }
        }
        let mut made = HashMap::new();
        for member in &self.members {
            if members::find(tx, id, member.id).await?.is_some() {
                continue;
            }
            let user = match &member.user {
                Some(user) => Some(find_or_create_user(tx, environment, user, &mut made).await?),
                None => None,
            };
            let address = member.user.as_ref().map(|user| &user.email);
            let twice = match address.or(member.invited_email.as_ref()) {
                Some(email) => find_member_by_email(tx, id, email).await?,
                None => None,
            };
            if let Some(other) = twice {
                return Err(RestoreError::Because(format!(
                    "members.json: {}: the same person is a member or invited as {}: remove one of \
                     them",
                    member.id, other.id
                )));
            }
            let member = Member {
                id: member.id,
                user,
                role: member.role_id,
                invited_email: member.invited_email.clone().map(Into::into),
                invited_name: member.invited_name.clone().map(Into::into),
                version: restored_version(environment),
            };
            members::insert(tx, id, &member, now).await?;
        }
        for tag in &self.tags {
            if tags::find(tx, id, tag.id).await?.is_none() {
                tags::insert(tx, id, tag, now).await?;
            }
        }
        for variant in &self.variants {
            if variants::find(tx, id, variant.id).await?.is_none() {
                let inserted = variants::insert(tx, id, variant, now).await;
                inserted.map_err(of("variants.json", variant.id))?;
            }
        }
        for group in &self.groups {
            if storage::content_groups::find(tx, id, group.id).await?.is_none() {
                let (own, ancestor) = (group.id, group.ancestor);
                content_groups::create_with_id(tx, environment, &scope, own, &group.name, ancestor)
                    .await
                    .map_err(of("groups.json", own))?;
            }
        }
        Ok(())
    }

    /// Inserts the webhooks that don't exist yet. Returns their number.
    async fn insert_missing_webhooks(
        &self,
        tx: &WriteTx<'_>,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let id = self.workspace.id;
        let mut kept = 0;
        for webhook in &self.webhooks {
            if webhooks::find(tx, id, webhook.id, None).await?.is_none() {
                webhooks::insert(tx, id, webhook, None, now).await?;
                kept += 1;
            }
        }
        Ok(kept)
    }
}

/// Returns the member with this address, or the invite for it.
async fn find_member_by_email(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    email: &EmailAddress,
) -> Result<Option<Member>, storage::Error> {
    if let Some(user) = users::find_by_email(tx, email).await? {
        let member = members::find_by_user(tx, workspace, user.id).await?;
        if member.is_some() {
            return Ok(member);
        }
    }
    members::find_pending(tx, workspace, email).await
}

/// Returns the user with this address or creates one. The new user keeps its id and username unless
/// they are in use.
async fn find_or_create_user(
    tx: &WriteTx<'_>,
    environment: &Environment,
    wanted: &format::BundleUser,
    made: &mut HashMap<UserId, User>,
) -> Result<User, Error> {
    if let Some(user) = made.get(&wanted.id) {
        return Ok(user.clone());
    }
    if let Some(user) = users::find_by_email(tx, &wanted.email).await? {
        return Ok(user);
    }
    let is_free = users::find(tx, wanted.id).await?.is_none();
    let id = if is_free { wanted.id } else { UserId::new(environment.new_id()) };
    let mut username = wanted.username.clone();
    for number in 1.. {
        if !users::has_username(tx, &username).await? {
            break;
        }
        username = Username::from_email(&wanted.email, number);
    }
    let user = User {
        id,
        email: wanted.email.clone().into(),
        username: username.into(),
        full_name: wanted.full_name.clone().into(),
        avatar: wanted.avatar.clone().map(Into::into),
        version: restored_version(environment),
    };
    users::insert(tx, &user, environment.now()).await?;
    made.insert(wanted.id, user.clone());
    Ok(user)
}

/// A valid piece with its content, its overrides in variants, and its sources.
type ParsedPiece = (ContentPiece, String, Vec<Override>, Vec<NewSource>);

#[derive(Debug, Default)]
struct RestoreReport {
    restored: usize,
    there: usize,
    problems: Vec<String>,
}

impl RestoreReport {
    /// Writes pieces in one transaction, or each in its own if one of them is rejected.
    async fn keep(
        &mut self,
        database: &Database,
        environment: &Environment,
        scope: &Scope,
        read: Vec<ParsedPiece>,
        names: &[&PathBuf],
    ) -> anyhow::Result<()> {
        let read = Arc::new(read);
        let write = async |some: std::ops::Range<usize>| {
            let (read, environment, scope) =
                (Arc::clone(&read), environment.clone(), scope.clone());
            let write = async move |tx: &WriteTx<'_>| {
                let mut restored = 0;
                for (piece, content, overrides, sources) in &read[some.clone()] {
                    let is_new = content_pieces::restore(
                        tx,
                        &environment,
                        &scope,
                        piece,
                        content,
                        overrides,
                    )
                    .await?;
                    if is_new {
                        import_sources::save_in(tx, &scope, sources).await?;
                        restored += 1;
                    }
                }
                Ok::<_, Error>(restored)
            };
            database.write("bundle.pieces", write).await
        };
        match write(0..read.len()).await {
            Ok(restored) => {
                self.restored += restored;
                self.there += read.len() - restored;
                return Ok(());
            }
            Err(error) if error.storage_error().is_some() => return Err(interrupted(error)),
            Err(_) => {}
        }
        for (index, name) in names.iter().enumerate() {
            match write(index..index + 1).await {
                Ok(restored) => {
                    self.restored += restored;
                    self.there += 1 - restored;
                }
                Err(error) if error.storage_error().is_some() => return Err(interrupted(error)),
                Err(error) => self.problems.push(format!("{}: {error}", name.display())),
            }
        }
        Ok(())
    }
}

fn interrupted(error: Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the import stopped: run it again to continue")
}

/// Reads the webhooks without their secrets. All of them are disabled.
fn read_webhooks(
    place: &Path,
    groups: &[format::BundleGroup],
    version: i64,
) -> anyhow::Result<Vec<Webhook>> {
    let mut read_webhooks = Vec::new();
    for one in file::<Vec<format::BundleWebhook>>(place)? {
        let event: EventType = one.event.parse().map_err(|_| {
            anyhow::anyhow!(
                "{}: {}: the event {:?} does not exist",
                place.display(),
                one.id,
                one.event
            )
        })?;
        if one.content_group_id.is_none() && event.resource() == Resource::ContentPieces {
            let (place, event) = (place.display(), event.as_str());
            bail!("{place}: {}: contentGroupId is required for {event}", one.id);
        }
        let is_there = |group| groups.iter().any(|known| known.id == group);
        // Without its secret, the webhook would send unsigned requests to real receivers, perhaps
        // from a test copy.
        let reason = match one.content_group_id {
            Some(group) if !is_there(group) => DisabledReason::GroupDeleted,
            _ => DisabledReason::Requested,
        };
        read_webhooks.push(Webhook {
            id: one.id,
            url: one.url,
            name: one.name,
            description: one.description,
            event,
            content_group_id: one.content_group_id,
            extension: one.extension.map(Into::into),
            enabled: false,
            disabled_reason: Some(reason),
            failing_since: None,
            dropped: 0,
            version,
        });
    }
    Ok(read_webhooks)
}

/// Checks that each id occurs once.
fn check_unique<T: Copy + Eq + Hash + Display>(
    place: &Path,
    ids: impl Iterator<Item = T>,
) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            bail!("{}: {id} occurs twice", place.display());
        }
    }
    Ok(())
}

/// Checks the roles with a base type. Such roles can't be edited, so they must be as Galley creates
/// them.
fn check_base_types(place: &Path, roles: &[role::Role]) -> anyhow::Result<()> {
    check_unique(place, roles.iter().filter_map(|role| role.base_type.map(BaseType::as_str)))
        .context("at most one role can have each baseType")?;
    for role in roles.iter().filter(|role| role.is_admin()) {
        if role.permissions != PermissionSet::ALL {
            bail!("{}: {}: an Admin has all permissions", place.display(), role.id);
        }
    }
    Ok(())
}

/// Returns the files of the pieces in a fixed order, and messages about missing ones.
fn pieces(folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let mut missing = Vec::new();
    for name in folder::exported_files(folder).unwrap_or_default() {
        if !folder.join(&name).exists() {
            missing.push(format!("{}: is missing", folder.join(&name).display()));
        }
    }
    let folder = folder.join("pieces");
    if !folder.is_dir() || folder.is_symlink() {
        if missing.is_empty() && folder.is_symlink() {
            missing.push(format!("{}: is not a folder", folder.display()));
        }
        return Ok((Vec::new(), missing));
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).follow_links(false).sort_by_file_name() {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "json") {
            files.push(entry.into_path());
        }
    }
    Ok((files, missing))
}

/// Reads a file. Error messages begin with its path.
fn file<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    parse_file(path).map_err(|problem| anyhow::anyhow!("{}{problem}", path.display()))
}

/// Parses a file. Error messages begin with a colon, and with the line if it is known.
fn parse_file<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| format!(": {error}"))?;
    if !metadata.is_file() {
        return Err(": is not a regular file and is skipped".to_owned());
    }
    let size = metadata.len();
    if size > FILE_SIZE_LIMIT {
        return Err(format!(": has {size} bytes, more than the limit of {FILE_SIZE_LIMIT}"));
    }
    let text = fs::read(path).map_err(|error| format!(": {error}"))?;
    format::from_json(&text).map_err(|error| match error.line() {
        0 => format!(": {error}"),
        line => format!(":{line}: {error}"),
    })
}

fn piece(path: &Path) -> Result<ParsedPiece, String> {
    let mut read: format::BundlePiece = parse_file(path)?;
    read.description = description(read.description.take())?;
    read.tags = references("tags", read.tags)?;
    read.members = references("members", read.members)?;
    let content = tree("content", &read.content)?;
    let mut overrides = Vec::new();
    for (variant, mut one) in std::mem::take(&mut read.variants) {
        one.description = description(one.description.take())?;
        one.tags = one.tags.map(|tags| references("tags", tags)).transpose()?;
        one.members = one.members.map(|members| references("members", members)).transpose()?;
        let content = one.content.as_ref().map(|value| tree("content", value)).transpose()?;
        overrides.push((variant, one.into_overrides(), content));
    }
    let sources = std::mem::take(&mut read.sources).into_iter().map(|one| {
        let format::NotedSource { variant, source_hash, imported_hash } = one;
        let source = ImportSource { source_hash, imported_hash };
        NewSource { piece: read.id, variant: variant.map(VariantRef::Id), source }
    });
    let sources = sources.collect();
    let piece = ContentPiece {
        id: read.id,
        content_group_id: read.content_group_id,
        order: read.order.clone(),
        placed_at: read.created_at,
        // The restore assigns another version.
        version: 1,
        created_at: read.created_at,
        updated_at: read.updated_at,
        fields: read.into_fields(),
    };
    Ok((piece, content, overrides, sources))
}

/// Removes unsafe HTML from a description: the file may come from any source.
fn description(given: Option<Description>) -> Result<Option<Description>, String> {
    let clean = |text: Description| sanitize::description(text.into());
    given.map(clean).transpose().map_err(|invalid| format!(": description {invalid}"))
}

/// Returns the ids in the given order without duplicates.
fn references<T: Copy + Eq + Hash>(name: &str, ids: Vec<T>) -> Result<Vec<T>, String> {
    let mut seen = HashSet::new();
    let ids: Vec<T> = ids.into_iter().filter(|&id| seen.insert(id)).collect();
    if ids.len() > REFERENCES_MAX {
        return Err(format!(": {name} must have at most {REFERENCES_MAX} items"));
    }
    Ok(ids)
}

/// Returns the tree that the service would produce from the same content.
fn tree(name: &str, value: &Value) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!(": {name}: {error}");
    let given = Tree::from_json(&value.to_string()).map_err(|error| wrong(&error))?;
    let made = Tree::from_html(&given.to_html(), &ContentLimits::default());
    let made = made.map_err(|error| wrong(&error))?.to_json_within(TREE_SIZE_LIMIT);
    made.ok_or_else(|| format!(": {name}: exceeds {TREE_SIZE_LIMIT} bytes"))
}
