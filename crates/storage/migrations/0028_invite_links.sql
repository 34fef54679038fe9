-- oldest-program: 0.2.0

-- A code that the inviter copies proves nothing about the address, unlike a mailed one.
ALTER TABLE invites ADD COLUMN is_copied BOOLEAN NOT NULL DEFAULT FALSE;
