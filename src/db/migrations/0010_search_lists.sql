-- What messages are found by is kept in lists of our own (capabilities/search): one for each word of an account in a
-- segment of its messages, newest first. What is not in a segment yet is pending; what was edited or deleted since it
-- was listed is stale there until segments are merged.

create table search_segments (
  id bigint generated always as identity primary key,
  account_id text not null,
  workspace_id uuid not null,
  messages integer not null check (messages >= 0),
  oldest_at timestamptz not null,
  newest_at timestamptz not null,
  -- When the messages of some ranks were sent: 0, 1, 2 and so on, further down in ever longer steps.
  times bytea not null,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index search_segments_account on search_segments (account_id);

-- A list lies in parts, so that its beginning can be read without the rest; `length` is that of the whole list. Whose it
-- is says the segment, which comes and goes with its lists in one transaction: a key that refers to it would be checked
-- for every word.
create table search_lists (
  segment_id bigint not null,
  word text collate "C" not null,
  part integer not null,
  length integer not null,
  bytes bytea not null,
  primary key (segment_id, word, part)
);
alter table search_lists alter column bytes set storage plain;

-- Which message has which rank in a segment, 80 in a row: the newest is 0, and lists are lists of ranks.
create table search_ranks (
  segment_id bigint not null,
  part integer not null,
  newest_at timestamptz not null,
  bytes bytea not null,
  primary key (segment_id, part)
);
alter table search_ranks alter column bytes set storage plain;
create index search_ranks_newest on search_ranks (segment_id, newest_at, part desc);

create table search_pending (
  account_id text not null,
  sent_at timestamptz not null,
  chat_id bigint not null,
  id bigint not null,
  workspace_id uuid not null,
  since timestamptz not null default clock_timestamp(),
  primary key (account_id, sent_at, chat_id, id)
);

create table search_stale (
  account_id text not null,
  sent_at timestamptz not null,
  chat_id bigint not null,
  id bigint not null,
  -- Which listing of the message it is: each has a rank of its own.
  listing smallint not null,
  workspace_id uuid not null,
  primary key (account_id, sent_at, chat_id, id, listing)
);

drop index messages_unrenewed;
drop index messages_tokens;
alter table messages drop column tokens_format, drop column tokens, add column listing smallint not null default 0;

insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
select account_id, sent_at, chat_id, id, workspace_id from messages where deleted_at is null;

create function list_new_messages() returns trigger language plpgsql as $$
begin
  insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
  select account_id, sent_at, chat_id, id, workspace_id from added where deleted_at is null;
  return null;
end $$;
create trigger messages_added after insert on messages referencing new table as added
  for each statement execute function list_new_messages();

-- A message that is pending is listed as it will be then, once. Whoever lists it locks it there, so that this waits.
create function list_changed_message() returns trigger language plpgsql as $$
declare
  was_listed boolean;
begin
  new.listing := (old.listing + 1) % 32768;
  if new.deleted_at is null then
    insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
    values (new.account_id, new.sent_at, new.chat_id, new.id, new.workspace_id)
    on conflict (account_id, sent_at, chat_id, id) do update set workspace_id = excluded.workspace_id
    returning (xmax = 0) into was_listed;
  else
    delete from search_pending
    where account_id = old.account_id and sent_at = old.sent_at and chat_id = old.chat_id and id = old.id;
    was_listed := not found;
  end if;
  if was_listed then
    insert into search_stale (account_id, sent_at, chat_id, id, listing, workspace_id)
    values (old.account_id, old.sent_at, old.chat_id, old.id, old.listing, old.workspace_id)
    on conflict do nothing;
  end if;
  return new;
end $$;
create trigger messages_changed before update on messages for each row
  when (old.deleted_at is null and (new.deleted_at is not null or new.text is distinct from old.text))
  execute function list_changed_message();
