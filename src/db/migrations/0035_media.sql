-- Files of messages that callers have asked for, fetched from the platform and kept for some days.

-- Messages stored so far: their files get a place and a kind, as new ones have. Telegram's were named after their kind.
update messages m set attachments = (
  select jsonb_agg(file || jsonb_build_object('index', n - 1, 'kind',
    case when file ->> 'file_name' in ('photo', 'voice', 'video', 'sticker') then file ->> 'file_name' else 'file' end) order by n)
  from jsonb_array_elements(m.attachments) with ordinality as each (file, n))
where attachments <> '[]';

-- Unlogged, and without a reference to other tables: it is a cache, which no backup has and a restore leaves out.
create unlogged table media_files (
  -- Of one attempt to fetch it: chunks of an earlier attempt never mix with those of a later one.
  id uuid primary key,
  account_id text not null,
  chat_id bigint not null,
  message_id bigint not null,
  index integer not null,
  workspace_id uuid not null,
  wanted_at timestamptz not null default clock_timestamp(),
  -- Counts towards the workspace's bound from the moment its download begins.
  size bigint check (size >= 0),
  -- Null while it is wanted, or being fetched.
  ended_at timestamptz,
  -- Null: the whole file is stored.
  failure text check (failure in ('gone', 'too_large', 'unavailable')),
  -- The first bytes, which say what it is.
  head bytea,
  unique (account_id, chat_id, message_id, index),
  check (failure is null or ended_at is not null),
  check (ended_at is null or failure is not null or size is not null)
);
create index media_files_wanted on media_files (account_id, wanted_at) where ended_at is null;
create index media_files_kept on media_files (workspace_id, ended_at) include (size);
create index media_files_old on media_files (wanted_at);

create unlogged table media_chunks (
  file_id uuid not null references media_files (id) on delete cascade,
  n integer not null,
  bytes bytea not null,
  primary key (file_id, n)
);
-- Most files are compressed already.
alter table media_chunks alter column bytes set storage external;

-- A file goes with its message, or when an edit may have replaced it: another file can have the same name and size.
create function forget_media_file() returns trigger language plpgsql as $$
begin
  delete from media_files where account_id = old.account_id and chat_id = old.chat_id and message_id = old.id;
  return null;
end $$;
create trigger messages_media after update of attachments on messages for each row
  when (old.attachments <> '[]' and (old.attachments, old.edited_at) is distinct from (new.attachments, new.edited_at))
  execute function forget_media_file();
