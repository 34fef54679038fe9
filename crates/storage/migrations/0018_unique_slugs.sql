-- oldest-program: 0.2.0

-- The slugs of the pieces in the group and its descendants are unique.
ALTER TABLE content_groups ADD COLUMN unique_slugs BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX content_groups_unique_slugs ON content_groups (workspace_id, id) WHERE unique_slugs;
