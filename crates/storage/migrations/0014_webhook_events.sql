-- oldest-program: 0.2.0

-- `events` are all events of the webhook, separated by commas; `event` is the first that was named.
-- The previous secret signs besides the current one until its time.
ALTER TABLE webhooks ADD COLUMN events TEXT NOT NULL DEFAULT '';
UPDATE webhooks SET events = event;
ALTER TABLE webhooks ADD COLUMN previous_sealed_secret BYTEA;
ALTER TABLE webhooks ADD COLUMN previous_secret_until_ms BIGINT;
