-- oldest-program: 0.2.0

-- The authors of a piece's creation and of its last change: `system`, or the ids of the token and of
-- the member. They are null for pieces from before this migration.
ALTER TABLE content_pieces ADD COLUMN created_by TEXT;
ALTER TABLE content_pieces ADD COLUMN updated_by TEXT;
