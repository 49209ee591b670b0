-- How much of the past is here: for each account how far its first sync has come, for each chat how far back.

-- Times on the wire: RFC 3339, UTC, milliseconds. A chat without messages has none.
create function wire_time(at timestamptz) returns text language sql stable parallel safe
  return case when at > '-infinity' then to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end;

create table account_sync (
  account_id text primary key,
  workspace_id uuid not null,
  -- Chats are listed first, then contacts, then the recent history of each chat.
  phase text not null default 'chats' check (phase in ('chats', 'contacts', 'history', 'done')),
  -- Where the list of chats goes on.
  cursor text,
  chats_total integer not null default 0,
  chats_synced integer not null default 0,
  updated_at timestamptz not null default domain_now(),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);

create table chat_sync (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  -- The store holds everything from this message on; null: nothing was fetched yet.
  oldest_id bigint,
  -- The platform has nothing older.
  complete boolean not null default false,
  -- Somebody waits for older messages.
  wanted_at timestamptz,
  primary key (account_id, chat_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index chat_sync_wanted on chat_sync (account_id, wanted_at) where wanted_at is not null;
create index chat_sync_fresh on chat_sync (account_id, chat_id) where oldest_id is null and not complete;
create index chat_sync_incomplete on chat_sync (account_id) where not complete;

-- Names are listed and searched as the application normalises them.
create extension if not exists btree_gin;
alter table contacts add column sort_name text not null default '';
alter table contacts add column name_tokens tsvector not null default '';
create index contacts_words on contacts using gin (account_id, name_tokens);
drop index contacts_name;
create index contacts_name on contacts (account_id, sort_name, provider_id);
