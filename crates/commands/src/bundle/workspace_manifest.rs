//! A workspace's data in a bundle, except the pieces.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;
use std::path::Path;

use anyhow::{Context, bail};
use galley_application::operations::trash::contains_group;
use galley_application::operations::{content_groups, restored_version};
use galley_application::{Environment, Error, Scope, custom_data_schema};
use galley_domain::content_group::ContentGroup;
use galley_domain::event::{EventType, EventTypes};
use galley_domain::people::{EmailAddress, Username};
use galley_domain::permission::PermissionSet;
use galley_domain::publication::ContentView;
use galley_domain::role::BaseType;
use galley_domain::tag::Tag;
use galley_domain::variant::Variant;
use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{Permission, Timestamp, UserId, WorkspaceId, role};
use galley_storage::members::Member;
use galley_storage::users::{self, User};
use galley_storage::webhooks::VisibleWebhooks;
use galley_storage::{
    self as storage, Failure, WriteTx, members, roles, tags, variants, webhooks, workspaces,
};

use super::format::{self, FORMAT_VERSION};
use super::manifest::MANIFEST;
use crate::bundle::files::file;

/// The reason why the workspace's data was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
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
    DryRun,
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
            Self::Because(_) | Self::DryRun => None,
        }
    }
}

/// Adds the file and item to an error.
fn of<E: Into<Error>>(file: &str, id: impl std::fmt::Display) -> impl FnOnce(E) -> RestoreError {
    move |error| RestoreError::Of(format!("{file}: {id}"), error.into())
}

/// A workspace's data except the pieces.
pub(super) struct WorkspaceManifest {
    pub(super) workspace: format::BundleWorkspace,
    roles: Vec<role::Role>,
    members: Vec<format::BundleMember>,
    tags: Vec<Tag>,
    variants: Vec<Variant>,
    groups: Vec<format::BundleGroup>,
    webhooks: Vec<Webhook>,
}

impl WorkspaceManifest {
    pub(super) fn read(folder: &Path, version: i64) -> anyhow::Result<Self> {
        let manifest: format::Manifest = file(&folder.join(MANIFEST))?;
        if manifest.galley_bundle > FORMAT_VERSION {
            bail!("{} was exported by a newer galley", folder.display());
        }
        let roles = read_roles(&folder.join("roles.json"), version)?;
        let groups_file = folder.join("groups.json");
        let groups: Vec<format::BundleGroup> = file(&groups_file)?;
        check_unique(&groups_file, groups.iter().map(|group| group.id))?;
        for group in &groups {
            let checked =
                group.custom_data_schema.as_ref().map_or(Ok(()), custom_data_schema::check);
            if let Err(issues) = checked {
                let messages = issues.into_iter().map(|issue| issue.message).collect::<Vec<_>>();
                bail!("{}: {}: {}", groups_file.display(), group.id, messages.join("; "));
            }
        }
        Ok(Self {
            workspace: manifest.workspace,
            members: read_members(&folder.join("members.json"), &roles)?,
            roles,
            tags: read_tags(&folder.join("tags.json"), version)?,
            variants: read_variants(&folder.join("variants.json"), version)?,
            webhooks: read_webhooks(&folder.join("webhooks.json"), &groups, version)?,
            groups,
        })
    }

    /// Inserts the resources that don't exist yet, except the webhooks.
    pub(super) async fn insert(
        &self,
        tx: &WriteTx<'_>,
        environment: &Environment,
    ) -> Result<(), RestoreError> {
        let (id, now) = (self.workspace.id, environment.now());
        let scope = Scope::whole(id);
        if workspaces::find(tx, id).await?.is_none() {
            workspaces::insert(tx, id, self.workspace.name.as_str(), now).await?;
            if let Some(mut workspace) = workspaces::find(tx, id).await? {
                workspace.description = self.workspace.description.clone();
                workspace.logo = self.workspace.logo.clone();
                workspace.language = self.workspace.language.clone();
                workspaces::update(tx, &workspace).await?;
            }
        }
        workspaces::lock(tx, id).await?;
        for role in &self.roles {
            if roles::find(tx, id, role.id).await?.is_none() {
                roles::insert(tx, id, role, now).await.map_err(of("roles.json", role.id))?;
            }
        }
        self.insert_missing_members(tx, environment).await?;
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
        // A group in the trash stays there, with those below it.
        let mut left_out = HashSet::new();
        for group in &self.groups {
            if contains_group(tx, &scope, group.id).await?
                || group.ancestor.is_some_and(|ancestor| left_out.contains(&ancestor))
            {
                left_out.insert(group.id);
            } else if storage::content_groups::find(tx, id, group.id).await?.is_none() {
                let own = ContentGroup {
                    id: group.id,
                    name: group.name.clone(),
                    unique_slugs: group.unique_slugs,
                    custom_data_schema: group.custom_data_schema.clone(),
                    preview_url: group.preview_url.clone(),
                    version: 1,
                };
                content_groups::restore(tx, environment, &scope, own, group.ancestor)
                    .await
                    .map_err(of("groups.json", group.id))?;
            }
        }
        Ok(())
    }

    async fn insert_missing_members(
        &self,
        tx: &WriteTx<'_>,
        environment: &Environment,
    ) -> Result<(), RestoreError> {
        let (id, now) = (self.workspace.id, environment.now());
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
        Ok(())
    }

    /// Inserts the webhooks that don't exist yet. Returns their number.
    pub(super) async fn insert_missing_webhooks(
        &self,
        tx: &WriteTx<'_>,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let id = self.workspace.id;
        let mut kept = 0;
        for webhook in &self.webhooks {
            if webhooks::find(tx, id, webhook.id, VisibleWebhooks::default()).await?.is_none() {
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
        // The operator vouches for the addresses of a bundle.
        email_verified_at: Some(environment.now()),
    };
    users::insert(tx, &user, environment.now()).await?;
    made.insert(wanted.id, user.clone());
    Ok(user)
}

/// Reads the webhooks without their secrets. All of them are disabled.
fn read_roles(path: &Path, version: i64) -> anyhow::Result<Vec<role::Role>> {
    let mut roles = Vec::new();
    for one in file::<Vec<format::BundleRole>>(path)? {
        let place = || format!("{}: {}", path.display(), one.id);
        let permissions: Result<PermissionSet, _> =
            one.permissions.iter().map(|name| name.parse::<Permission>()).collect();
        let base_type = one.base_type.as_deref().map(str::parse).transpose();
        let base_type = base_type.map_err(|invalid| anyhow::anyhow!("baseType {invalid}"));
        let mut role = role::Role {
            id: one.id,
            permissions: permissions.with_context(place)?,
            base_type: base_type.with_context(place)?,
            name: one.name,
            description: one.description,
            version,
        };
        if role.is_admin() {
            // The bundle may be older than some permissions.
            role.permissions = PermissionSet::ALL;
        }
        roles.push(role);
    }
    check_unique(path, roles.iter().map(|role| role.id))?;
    check_unique(path, roles.iter().filter_map(|role| role.base_type.map(BaseType::as_str)))
        .context("at most one role can have each baseType")?;
    Ok(roles)
}

fn read_members(path: &Path, roles: &[role::Role]) -> anyhow::Result<Vec<format::BundleMember>> {
    let members: Vec<format::BundleMember> = file(path)?;
    check_unique(path, members.iter().map(|one| one.id))?;
    for one in &members {
        if one.user.is_none() && one.invited_email.is_none() {
            bail!("{}: {}: has neither user nor invitedEmail", path.display(), one.id);
        }
        if !roles.iter().any(|role| role.id == one.role_id) {
            bail!("{}: {}: the role {} does not exist", path.display(), one.id, one.role_id);
        }
    }
    let is_admin = |id| roles.iter().any(|role| role.id == id && role.is_admin());
    if !members.iter().any(|one| one.user.is_some() && is_admin(one.role_id)) {
        bail!("{}: no member with a user is an Admin", path.display());
    }
    Ok(members)
}

fn read_tags(path: &Path, version: i64) -> anyhow::Result<Vec<Tag>> {
    let mut tags = Vec::new();
    for one in file::<Vec<format::BundleTag>>(path)? {
        let color = one.color.parse();
        let color = color.map_err(|invalid| {
            anyhow::anyhow!("{}: {}: color {invalid}", path.display(), one.id)
        })?;
        tags.push(Tag { id: one.id, label: one.label, color, version });
    }
    check_unique(path, tags.iter().map(|tag| tag.id))?;
    Ok(tags)
}

fn read_variants(path: &Path, version: i64) -> anyhow::Result<Vec<Variant>> {
    let read = |format::BundleVariant { id, key, label, description }| Variant {
        id,
        key,
        label,
        description,
        version,
    };
    let variants: Vec<_> = file::<Vec<_>>(path)?.into_iter().map(read).collect();
    check_unique(path, variants.iter().map(|variant| variant.id))?;
    Ok(variants)
}

fn read_webhooks(
    place: &Path,
    groups: &[format::BundleGroup],
    version: i64,
) -> anyhow::Result<Vec<Webhook>> {
    let mut webhooks = Vec::new();
    for one in file::<Vec<format::BundleWebhook>>(place)? {
        let parse = |name: &String| {
            name.parse::<EventType>().map_err(|_| {
                let place = place.display();
                anyhow::anyhow!("{place}: {}: the event {name:?} does not exist", one.id)
            })
        };
        let event = parse(&one.event)?;
        let others = one.events.iter().flatten().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
        let is_there = |group| groups.iter().any(|known| known.id == group);
        // Without its secret, the webhook would send unsigned requests to real receivers, perhaps
        // from a test copy.
        let reason = match one.content_group_id {
            Some(group) if !is_there(group) => DisabledReason::GroupDeleted,
            _ => DisabledReason::Requested,
        };
        webhooks.push(Webhook {
            id: one.id,
            url: one.url,
            hides_emails: one.hides_emails,
            name: one.name,
            description: one.description,
            event,
            events: EventTypes::new(others.into_iter().chain([event])),
            content_group_id: one.content_group_id,
            view: if one.published_view { ContentView::Published } else { ContentView::Current },
            extension: one.extension.map(Into::into),
            enabled: false,
            disabled_reason: Some(reason),
            failing_since: None,
            dropped: 0,
            version,
        });
    }
    check_unique(place, webhooks.iter().map(|webhook| webhook.id))?;
    Ok(webhooks)
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
