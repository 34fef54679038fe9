-- oldest-program: 0.2.0

-- The URL of the page that shows drafts, with placeholders.
ALTER TABLE content_groups ADD COLUMN preview_url TEXT;
ALTER TABLE trashed_groups ADD COLUMN preview_url TEXT;
