-- Who is here, what they may do, and how the instance itself is set.

-- Domain time: a manual clock holds for every process because it is a row.
create table manual_clock (
  singleton boolean primary key default true check (singleton),
  at timestamptz not null
);

create function domain_now() returns timestamptz language sql stable
  return coalesce((select at from manual_clock), statement_timestamp());

create table workspaces (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 200),
  -- The day of quotas and analytics is this zone's.
  timezone text not null default 'UTC',
  created_at timestamptz not null default domain_now()
);

create table users (
  id uuid primary key,
  email text not null check (char_length(email) between 3 and 320),
  name text not null default '',
  password_hash text,
  -- May change what holds for the whole instance.
  operator boolean not null default false,
  created_at timestamptz not null default domain_now(),
  disabled_at timestamptz
);
create unique index users_email on users (lower(email));

-- Keyed by (issuer, subject), never by e-mail. A local account is an identity too.
create table identities (
  issuer text not null,
  subject text not null,
  user_id uuid not null references users,
  idp_user_uuid uuid not null,
  created_at timestamptz not null default domain_now(),
  primary key (issuer, subject)
);
create index identities_user on identities (user_id);

create table sessions (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  user_id uuid not null references users,
  created_at timestamptz not null default domain_now(),
  last_seen_at timestamptz not null default domain_now(),
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);

-- The link that lets a new user choose how to sign in. Good once.
create table setup_links (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  user_id uuid not null references users,
  created_at timestamptz not null default domain_now(),
  expires_at timestamptz not null,
  used_at timestamptz
);

create table memberships (
  workspace_id uuid not null references workspaces,
  user_id uuid not null references users,
  role text not null check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null default domain_now(),
  primary key (workspace_id, user_id)
);
create index memberships_user on memberships (user_id);

create table keys (
  id uuid primary key,
  workspace_id uuid not null,
  user_id uuid not null,
  name text not null check (char_length(name) between 1 and 200),
  prefix text not null,
  hash bytea not null unique check (octet_length(hash) = 32),
  scopes text[] not null check (scopes <@ array['read', 'write', 'send', 'campaigns'] and cardinality(scopes) > 0),
  mcp_only boolean not null default false,
  created_at timestamptz not null default domain_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  foreign key (workspace_id, user_id) references memberships
);
create index keys_workspace on keys (workspace_id, created_at);

-- Gates are closed unless a row says otherwise; no migration ever inserts one.
create table gates (
  name text primary key,
  enabled boolean not null,
  changed_at timestamptz not null default domain_now()
);

create table allowlists (
  list text not null check (list in ('campaign_user', 'campaign_workspace')),
  id uuid not null,
  created_at timestamptz not null default domain_now(),
  primary key (list, id)
);

-- Small facts of the whole instance: `version`, `dispatch`, `audit_head`.
create table settings (
  name text primary key,
  value jsonb not null
);
insert into settings (name, value) values ('version', '1'), ('dispatch', 'true');

-- What processes keep in memory about keys and accounts is good for one version.
create function raise_settings_version() returns trigger language plpgsql as $$
begin
  update settings set value = to_jsonb((value #>> '{}')::bigint + 1) where name = 'version';
  return null;
end $$;

create trigger gates_version after insert or update or delete or truncate on gates
  for each statement execute function raise_settings_version();
create trigger allowlists_version after insert or update or delete or truncate on allowlists
  for each statement execute function raise_settings_version();
create trigger keys_version after update of revoked_at, expires_at, scopes, mcp_only or delete on keys
  for each statement execute function raise_settings_version();
create trigger workspaces_version after update on workspaces
  for each statement execute function raise_settings_version();
create trigger users_version after update of disabled_at on users
  for each statement execute function raise_settings_version();

-- What operators changed, in order. Each row's hash covers the one before it.
create table audit (
  seq bigint primary key,
  at timestamptz not null,
  workspace_id uuid,
  actor text not null,
  action text not null,
  target text not null,
  -- Canonical JSON as text: the hash covers these very bytes.
  detail text not null,
  hash bytea not null check (octet_length(hash) = 32)
);
create index audit_workspace on audit (workspace_id, seq);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are never changed', tg_table_name;
end $$;
create trigger audit_append_only before update or delete or truncate on audit
  for each statement execute function refuse_change();

-- Every process that works in the background. A stopped one is marked, so that its leases are free at once.
create table workers (
  id uuid primary key,
  started_at timestamptz not null default clock_timestamp(),
  beat_at timestamptz not null default clock_timestamp(),
  stopped_at timestamptz
);

-- The sliding window of a caller: the real times of its requests in the last minute. Worth nothing after a
-- crash, so it is not logged.
create unlogged table request_log (
  caller text primary key,
  hits timestamptz[] not null
);
