//! The groups of endpoints.

/// The groups of endpoints: the first segment of the path, the name and the description.
pub(super) const TAGS: [(&str, &str, &str); 27] = [
    (
        "content-pieces",
        "Content pieces",
        "Articles, posts and other content, with metadata and variants.",
    ),
    ("content-groups", "Content groups", "The tree of groups that hold pieces."),
    ("imports", "Imports", "Markdown, HTML, and exports of other systems as pieces."),
    ("tags", "Tags", "Labels with a color for pieces."),
    ("variants", "Variants", "Alternative versions of pieces, such as languages."),
    ("assets", ASSETS, "Images and other files, with public addresses."),
    ("a", ASSETS, ""),
    ("workspace-memberships", MEMBERSHIPS, "The members of the workspace, and invites."),
    ("invites", MEMBERSHIPS, ""),
    ("invite", MEMBERSHIPS, ""),
    ("roles", "Roles", "Named sets of permissions for members."),
    (
        "tokens",
        "Tokens",
        "Access tokens for programs. A token has at most the permissions of its member.",
    ),
    ("profile", PROFILE, "The user of the token or of the session."),
    ("sign-in", PROFILE, ""),
    ("sign-out", PROFILE, ""),
    ("workspace", "Workspace", "The workspace of the token."),
    ("settings", "Settings", "The settings of the installation."),
    ("webhooks", "Webhooks", "Receivers of events, and their deliveries."),
    ("events", "Events", "The changes in the workspace, in the order of their commits."),
    ("audit", "Audit log", "The changes of all resources, and their authors."),
    ("", SERVICE, ""),
    ("healthz", SERVICE, "The service itself: health, documentation. Requires no token."),
    ("readyz", SERVICE, ""),
    ("openapi.json", SERVICE, ""),
    ("console", SERVICE, ""),
    ("docs", SERVICE, ""),
    ("problems", SERVICE, ""),
];

const ASSETS: &str = "Assets";

const PROFILE: &str = "Profile";

const SERVICE: &str = "Service";

const MEMBERSHIPS: &str = "Workspace memberships";

pub(super) const API_DESCRIPTION: &str = "\
    A self-hosted service for content-management and publishing workspaces: content pieces in \
    groups, with tags and variants, by members with roles, and webhooks for changes.\n\nUnknown \
    fields are ignored, and unknown query parameters are rejected. Every path works with and \
    without a slash at its end. HEAD works where GET does. A body on GET or DELETE is ignored. \
    Identifiers are opaque, and a malformed one gets the same response as one that does not \
    exist. These paths change by addition only: clients must accept fields that are not described \
    here.\n\nErrors are problems by RFC 9457, which [/problems](/problems) explains. The samples \
    in TypeScript use the package `@galley/client`.";
