-- Messaging accounts and what they know: chats, messages, contacts. Times are the platform's.

create table accounts (
  id text primary key check (id ~ '^acc_[0-9A-Za-z]{1,64}$'),
  workspace_id uuid not null references workspaces,
  platform text not null check (platform in ('sandbox', 'telegram')),
  name text not null check (char_length(name) between 1 and 200),
  status text not null default 'CONNECTING'
    check (status in ('CONNECTING', 'READY', 'NEEDS_LOGIN', 'RESTRICTED', 'DISABLED')),
  status_reason text,
  platform_user_id bigint,
  username text,
  phone text,
  created_at timestamptz not null default domain_now(),
  unique (workspace_id, id)
);
create index accounts_workspace on accounts (workspace_id, created_at, id);

create trigger accounts_version after insert or update of status, name or delete on accounts
  for each statement execute function raise_settings_version();

-- Who drives the account's session right now. Written by the ledger and the host only.
create table account_hosts (
  account_id text primary key references accounts,
  workspace_id uuid not null,
  lease_owner uuid,
  lease_epoch bigint not null default 0,
  lease_until timestamptz,
  -- The platform answered or delivered something at this (real) time.
  observed_at timestamptz,
  flood_until timestamptz,
  next_campaign_at timestamptz,
  -- Where the stored updates end.
  position text,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index account_hosts_owner on account_hosts (lease_owner);

create table chats (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  kind text not null check (kind in ('private', 'group', 'channel')),
  name text not null default '',
  username text,
  participants jsonb not null default '[]',
  last_message_id bigint,
  last_message_text text,
  -- '-infinity' while the chat has no message: it sorts last, and the index needs no special case.
  last_message_at timestamptz not null default '-infinity',
  unread_count integer not null default 0 check (unread_count >= 0),
  -- Our messages up to this one have been read by the other side.
  read_by_them_id bigint,
  read_by_them_at timestamptz,
  stage_key text not null default 'new',
  primary key (account_id, chat_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index chats_recent on chats (account_id, last_message_at desc, chat_id desc);
create index chats_stage on chats (account_id, stage_key, last_message_at desc, chat_id desc);

-- Nothing refers to a message, so that the table can be partitioned by account later.
create table messages (
  account_id text not null,
  chat_id bigint not null,
  id bigint not null,
  workspace_id uuid not null,
  text text not null,
  is_sender boolean not null,
  sender_id bigint,
  -- Milliseconds: the digits below them carry the order of ties in `next_before`.
  sent_at timestamptz(3) not null,
  edited_at timestamptz,
  deleted_at timestamptz,
  attachments jsonb not null default '[]',
  random_id bigint,
  -- Its `message.received` has been emitted. Backfilled messages and our own never are.
  announced boolean not null default false,
  primary key (account_id, chat_id, id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index messages_history on messages (account_id, chat_id, sent_at desc, id desc) where deleted_at is null;
-- Deletions may name a message without its chat.
create index messages_id on messages (account_id, id);

-- What was deleted stays deleted, however late or often it arrives. Chat 0: the platform named no chat.
create table deleted_messages (
  account_id text not null,
  id bigint not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  primary key (account_id, id, chat_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);

create table contacts (
  account_id text not null,
  provider_id bigint not null,
  workspace_id uuid not null,
  name text not null default '',
  username text,
  phone text,
  primary key (account_id, provider_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index contacts_name on contacts (account_id, lower(name), provider_id);
