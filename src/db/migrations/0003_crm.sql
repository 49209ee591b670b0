-- What a team hangs on a chat: stages, columns with their values, and whom never to write to.

create table stages (
  workspace_id uuid not null references workspaces,
  key text not null check (key ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  label text not null check (char_length(label) between 1 and 200),
  terminal boolean not null default false,
  hidden boolean not null default false,
  position integer not null,
  created_at timestamptz not null default domain_now(),
  primary key (workspace_id, key),
  -- The default stage is always there to fall back on.
  check (key <> 'new' or not hidden)
);
alter table chats add foreign key (workspace_id, stage_key) references stages (workspace_id, key);

create table columns (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  name text not null check (char_length(name) between 1 and 200),
  type text not null
    check (type in ('select', 'multi_select', 'text', 'number', 'date', 'checkbox', 'url')),
  position integer not null,
  created_at timestamptz not null default domain_now(),
  unique (workspace_id, id)
);

create table column_options (
  workspace_id uuid not null,
  column_id uuid not null,
  value text not null check (char_length(value) between 1 and 200),
  color text,
  position integer not null,
  -- Values that use it stay readable; it can no longer be set.
  deleted_at timestamptz,
  primary key (column_id, value),
  foreign key (workspace_id, column_id) references columns (workspace_id, id) on delete cascade
);

create table column_values (
  account_id text not null,
  chat_id bigint not null,
  column_id uuid not null,
  workspace_id uuid not null,
  value text[] not null check (cardinality(value) > 0),
  updated_at timestamptz not null default domain_now(),
  primary key (account_id, chat_id, column_id),
  foreign key (account_id, chat_id) references chats on delete cascade,
  foreign key (workspace_id, column_id) references columns (workspace_id, id) on delete cascade
);
create index column_values_column on column_values (column_id, account_id, chat_id);

create table suppressions (
  workspace_id uuid not null references workspaces,
  kind text not null check (kind in ('platform_id', 'username', 'phone')),
  -- Normalised: digits, or a lower-case username without @.
  value text not null,
  source text not null check (source in ('operator', 'import', 'opt_out')),
  evidence jsonb not null default '{}',
  created_at timestamptz not null default domain_now(),
  primary key (workspace_id, kind, value)
);
