-- A key does no more than its maker's role allows, unless an operator issued it at the terminal.

-- Every process has to see a changed role within a second, as it sees an ended membership.
create trigger memberships_role_version after update of role on memberships
  for each statement execute function raise_settings_version();

-- Null: from before this migration, or made by a process of an older release. It counts as its user's own.
alter table keys add column issued_by text check (issued_by in ('user', 'operator'));
