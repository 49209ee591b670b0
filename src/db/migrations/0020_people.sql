-- People sign in: sessions say by which identity, memberships can end, users have a time zone.

-- No version so far has made a session.
delete from sessions;
alter table sessions
  add id uuid not null unique,
  add issuer text not null,
  add subject text not null,
  add user_agent text not null default '' check (char_length(user_agent) <= 300),
  add revoked_at timestamptz,
  -- Who unlinks an identity ends the sessions that began with it.
  add foreign key (issuer, subject) references identities on delete cascade;
create index sessions_identity on sessions (issuer, subject);

-- Null: the browser's.
alter table users add time_zone text check (char_length(time_zone) between 1 and 64);

create index setup_links_user on setup_links (user_id);

-- Keys refer to memberships, so one that is over is kept and says since when.
alter table memberships add ended_at timestamptz;
create trigger memberships_version after insert or update of ended_at or delete on memberships
  for each statement execute function raise_settings_version();

-- Joining again must not bring the keys of the time before back to life.
create function revoke_keys_of_ended_membership() returns trigger language plpgsql as $$
begin
  update keys set revoked_at = domain_now()
  where workspace_id = new.workspace_id and user_id = new.user_id and revoked_at is null;
  return null;
end $$;
create trigger memberships_ended after update of ended_at on memberships
  for each row when (old.ended_at is null and new.ended_at is not null)
  execute function revoke_keys_of_ended_membership();

-- A user who is enabled again signs in again.
create function revoke_sessions_of_disabled_user() returns trigger language plpgsql as $$
begin
  update sessions set revoked_at = domain_now() where user_id = new.id and revoked_at is null;
  return null;
end $$;
create trigger users_disabled after update of disabled_at on users
  for each row when (old.disabled_at is null and new.disabled_at is not null)
  execute function revoke_sessions_of_disabled_user();
