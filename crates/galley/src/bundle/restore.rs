//! `galley import` of a bundle: the workspace as it was, in another store.
//!
//! What is there already, by its id, stays as it is. So a restore that was stopped goes on where it is started again,
//! and one that was done changes nothing.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use galley_content::{Limits, Tree};
use galley_domain::content_piece::{ContentPiece, Description};
use galley_domain::people::Username;
use galley_domain::permission::PermissionSet;
use galley_domain::tag::Tag;
use galley_domain::variant::Variant;
use galley_domain::webhook::Webhook;
use galley_domain::{Permission, UserId, role};
use galley_server::operations::{Scope, content_groups, content_pieces};
use galley_server::{Environment, Error, sanitize};
use galley_storage::content_piece_variants::Override;
use galley_storage::members::Member;
use galley_storage::users::{self, User};
use galley_storage::{
    self as storage, Database, Failure as _, Role, WriteTx, members, roles, tags, variants,
    webhooks, workspaces,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use walkdir::WalkDir;

use super::format::{self, MANIFEST, VERSION};
use crate::cli::ImportArguments;
use crate::out::{plain, say};
use crate::settings::Settings;
use crate::{progress, store};

/// How many pieces are kept in one transaction.
const BATCH: usize = 16;

/// The greatest file that is read.
const FILE_MAX: u64 = 64 * 1024 * 1024;

pub(crate) async fn restore(
    settings: &Settings,
    arguments: &ImportArguments,
    folder: &Path,
) -> anyhow::Result<ExitCode> {
    if arguments.url.is_some() {
        bail!(
            "a bundle is restored with its ids, which only the database itself takes: leave --url out"
        );
    }
    let has_other = arguments.groups
        || arguments.no_drafts
        || arguments.group.is_some()
        || arguments.workspace.is_some()
        || !arguments.variants.is_empty()
        || !arguments.tags.is_empty()
        || arguments.sources.len() > 1;
    if has_other {
        bail!("a bundle is a whole workspace: name its folder alone, without other flags");
    }
    let frame = Frame::read(folder)?;
    let files = pieces(folder)?;
    if arguments.dry_run {
        say!("The frame of {} is right; {} pieces", frame.workspace.id, files.len());
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::default();
    let database = store::open(settings, &environment, Role::Command).await?;
    let workspace = frame.workspace.id;
    let webhooks = frame.webhooks.len();
    let (of_frame, frame) = (environment.clone(), Arc::new(frame));
    let keep = async move |tx: &WriteTx<'_>| frame.keep(tx, &of_frame).await;
    let is_new = database.write("bundle.frame", keep).await.context("nothing was restored")?;
    let bar = progress::bar("pieces", files.len() as u64);
    let mut report = Report::default();
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
    database.close().await;
    let Report { restored, there, problems } = report;
    let what = if is_new { "Restored" } else { "Went on with" };
    say!(
        "{what} {workspace}: {restored} pieces, {there} there already, {} with problems",
        problems.len()
    );
    if is_new && webhooks > 0 {
        say!("Its {webhooks} webhooks send nothing yet: give each its secret, and enable it.");
    }
    if is_new {
        say!("For a token of it: galley token create --workspace {workspace}");
    }
    for problem in &problems {
        eprintln!("{}", plain(problem));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything but the pieces.
struct Frame {
    workspace: format::Workspace,
    roles: Vec<role::Role>,
    members: Vec<format::Member>,
    tags: Vec<Tag>,
    variants: Vec<Variant>,
    groups: Vec<format::Group>,
    webhooks: Vec<Webhook>,
}

impl Frame {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let manifest: format::Manifest = file(&folder.join(MANIFEST))?;
        if manifest.galley_bundle > VERSION {
            bail!("{} is of a newer galley than this one", folder.display());
        }
        let mut read_roles = Vec::new();
        for one in file::<Vec<format::Role>>(&folder.join("roles.json"))? {
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
                version: 1,
            });
        }
        let read_members: Vec<format::Member> = file(&folder.join("members.json"))?;
        let admin = read_roles.iter().filter(|role| role.is_admin()).map(|role| role.id);
        let admin: Vec<_> = admin.collect();
        if !read_members.iter().any(|one| one.user.is_some() && admin.contains(&one.role_id)) {
            bail!("{}: no member with a user is an Admin", folder.join("members.json").display());
        }
        for one in &read_members {
            if !read_roles.iter().any(|role| role.id == one.role_id) {
                let place = folder.join("members.json");
                bail!("{}: {}: there is no role {}", place.display(), one.id, one.role_id);
            }
        }
        let groups: Vec<format::Group> = file(&folder.join("groups.json"))?;
        let mut read_tags = Vec::new();
        for one in file::<Vec<format::Tag>>(&folder.join("tags.json"))? {
            let color = one.color.parse().map_err(|invalid| {
                anyhow::anyhow!(
                    "{}: {}: color {invalid}",
                    folder.join("tags.json").display(),
                    one.id
                )
            })?;
            read_tags.push(Tag { id: one.id, label: one.label, color, version: 1 });
        }
        let read_variants = file::<Vec<format::Variant>>(&folder.join("variants.json"))?;
        let mut read_webhooks = Vec::new();
        for one in file::<Vec<format::Webhook>>(&folder.join("webhooks.json"))? {
            let event = one.event.parse().map_err(|_| {
                let place = folder.join("webhooks.json");
                anyhow::anyhow!(
                    "{}: {}: there is no event {:?}",
                    place.display(),
                    one.id,
                    one.event
                )
            })?;
            if let Some(group) = one.content_group_id
                && !groups.iter().any(|known| known.id == group)
            {
                let place = folder.join("webhooks.json");
                bail!("{}: {}: there is no content group {group}", place.display(), one.id);
            }
            read_webhooks.push(Webhook {
                id: one.id,
                url: one.url,
                name: one.name,
                description: one.description,
                event,
                content_group_id: one.content_group_id,
                extension: one.extension,
                // Without its secret it would call somebody unsigned, perhaps from a copy for trying things out.
                enabled: false,
                disabled_reason: None,
                failing_since: None,
                dropped: 0,
                version: 1,
            });
        }
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
                    version: 1,
                })
                .collect(),
            groups,
            webhooks: read_webhooks,
        })
    }

    /// Keeps what isn't there yet; says whether the workspace is new.
    async fn keep(&self, tx: &WriteTx<'_>, environment: &Environment) -> Result<bool, Error> {
        let (id, now) = (self.workspace.id, environment.now());
        let scope = Scope::whole(id);
        let is_new = workspaces::find(tx, id).await?.is_none();
        if is_new {
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
                roles::insert(tx, id, role, now).await?;
            }
        }
        let mut made = HashMap::new();
        for member in &self.members {
            if members::find(tx, id, member.id).await?.is_some() {
                continue;
            }
            let user = match &member.user {
                Some(user) => Some(find_or_make_user(tx, environment, user, &mut made).await?),
                None => None,
            };
            let member = Member {
                id: member.id,
                user,
                role: member.role_id,
                invited_email: member.invited_email.clone().map(Into::into),
                invited_name: member.invited_name.clone().map(Into::into),
                version: 1,
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
                variants::insert(tx, id, variant, now).await?;
            }
        }
        for group in &self.groups {
            if storage::content_groups::find(tx, id, group.id).await?.is_none() {
                let (own, ancestor) = (group.id, group.ancestor);
                content_groups::create_with_id(tx, environment, &scope, own, &group.name, ancestor)
                    .await?;
            }
        }
        for webhook in &self.webhooks {
            if webhooks::find(tx, id, webhook.id, None).await?.is_none() {
                webhooks::insert(tx, id, webhook, None, now).await?;
            }
        }
        Ok(is_new)
    }
}

/// The user with this address; or a new one, with the id and username that it had where nobody else has them.
async fn find_or_make_user(
    tx: &WriteTx<'_>,
    environment: &Environment,
    wanted: &format::User,
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
        version: 1,
    };
    users::insert(tx, &user, environment.now()).await?;
    made.insert(wanted.id, user.clone());
    Ok(user)
}

/// A piece that can be kept, with its content and what it says otherwise in variants.
type Read = (ContentPiece, String, Vec<Override>);

#[derive(Debug, Default)]
struct Report {
    restored: usize,
    there: usize,
    problems: Vec<String>,
}

impl Report {
    /// In one transaction; each in its own, where one of them is refused.
    async fn keep(
        &mut self,
        database: &Database,
        environment: &Environment,
        scope: &Scope,
        read: Vec<Read>,
        names: &[&PathBuf],
    ) -> anyhow::Result<()> {
        let read = Arc::new(read);
        let write = async |some: std::ops::Range<usize>| {
            let (read, environment, scope) =
                (Arc::clone(&read), environment.clone(), scope.clone());
            let write = async move |tx: &WriteTx<'_>| {
                let mut restored = 0;
                for (piece, content, overrides) in &read[some.clone()] {
                    let done = content_pieces::restore(
                        tx,
                        &environment,
                        &scope,
                        piece,
                        content,
                        overrides,
                    );
                    restored += usize::from(done.await?);
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
            Err(error) if error.storage_error().is_some() => return Err(stopped(error)),
            Err(_) => {}
        }
        for (index, name) in names.iter().enumerate() {
            match write(index..index + 1).await {
                Ok(restored) => {
                    self.restored += restored;
                    self.there += 1 - restored;
                }
                Err(error) if error.storage_error().is_some() => return Err(stopped(error)),
                Err(error) => self.problems.push(format!("{}: {error}", name.display())),
            }
        }
        Ok(())
    }
}

fn stopped(error: Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the import stopped, and goes on where it is started again")
}

/// The files of the pieces, in an order that is always the same.
fn pieces(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = folder.join("pieces");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).follow_links(false).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() && entry.path().extension().is_some_and(|end| end == "json")
        {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// What a file holds. The message begins with its path.
fn file<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    parsed(path).map_err(|problem| anyhow::anyhow!("{}{problem}", path.display()))
}

/// The message begins with a colon, and with the line where there is one.
fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let size = fs::metadata(path).map_err(|error| format!(": {error}"))?.len();
    if size > FILE_MAX {
        return Err(format!(": has {size} bytes, and at most {FILE_MAX} are read"));
    }
    let text = fs::read(path).map_err(|error| format!(": {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!(":{}: {error}", error.line()))
}

fn piece(path: &Path) -> Result<Read, String> {
    let mut read: format::Piece = parsed(path)?;
    read.description = description(read.description.take())?;
    let content = tree("content", &read.content)?;
    let mut overrides = Vec::new();
    for (variant, mut one) in std::mem::take(&mut read.variants) {
        one.description = description(one.description.take())?;
        let content = one.content.as_ref().map(|value| tree("content", value)).transpose()?;
        overrides.push((variant, one.overrides(), content));
    }
    let piece = ContentPiece {
        id: read.id,
        content_group_id: read.content_group_id,
        order: read.order.clone(),
        placed_at: read.created_at,
        fields: read.fields(),
        version: 1,
        created_at: read.created_at,
        updated_at: read.updated_at,
    };
    Ok((piece, content, overrides))
}

/// Without what isn't safe to show: somebody may have written the file.
fn description(given: Option<Description>) -> Result<Option<Description>, String> {
    let clean = |text: Description| sanitize::description(text.into());
    given.map(clean).transpose().map_err(|invalid| format!(": description {invalid}"))
}

/// The tree as the service itself would make it of the same content.
fn tree(name: &str, value: &Value) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!(": {name}: {error}");
    let given = Tree::from_json(&value.to_string()).map_err(|error| wrong(&error))?;
    let made = Tree::from_html(&given.to_html(), &Limits::default());
    Ok(made.map_err(|error| wrong(&error))?.to_json())
}
