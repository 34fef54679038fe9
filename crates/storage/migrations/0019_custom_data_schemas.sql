-- oldest-program: 0.2.0

-- A JSON Schema of the custom data of the pieces in the group and its descendants. A descendant's own
-- schema replaces it.
ALTER TABLE content_groups ADD COLUMN custom_data_schema TEXT;
CREATE INDEX content_groups_custom_data_schema ON content_groups (workspace_id, id)
    WHERE custom_data_schema IS NOT NULL;
