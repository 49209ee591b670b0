-- The inbox of a team: whose the last message of a chat is, who answers it, and notes on it.

alter table chats
  -- Whether the account sent the last message; null if there is none.
  add column last_is_sender boolean,
  -- The message that `last_is_sender` is about. A worker from before this migration changes the last message only, and
  -- then the trigger below looks.
  add column last_sender_of bigint,
  -- The member who answers the chat; null: no member in particular.
  add column assignee_id uuid,
  add foreign key (workspace_id, assignee_id) references memberships;

update chats c set last_is_sender = m.is_sender, last_sender_of = m.id from messages m
where m.account_id = c.account_id and m.chat_id = c.chat_id and m.id = c.last_message_id;

-- Every transaction stores a message before it makes it the last of its chat.
create function note_last_sender() returns trigger language plpgsql as $$
begin
  new.last_is_sender := (
    select is_sender from messages
    where account_id = new.account_id and chat_id = new.chat_id and id = new.last_message_id);
  new.last_sender_of := new.last_message_id;
  return new;
end $$;
create trigger chats_last before insert or update on chats for each row
  when (new.last_sender_of is distinct from new.last_message_id) execute function note_last_sender();

-- The views of the inbox, each in the order of its pages.
create index chats_unread on chats (account_id, last_message_at desc, chat_id desc) where unread_count > 0;
create index chats_unanswered on chats (account_id, last_message_at desc, chat_id desc) where not last_is_sender;
create index chats_assigned on chats (account_id, assignee_id, last_message_at desc, chat_id desc)
  where assignee_id is not null;

-- A member who leaves answers no more chats.
create function end_assignments() returns trigger language plpgsql as $$
begin
  update chats c set assignee_id = null from accounts a
  where a.workspace_id = new.workspace_id and c.account_id = a.id and c.assignee_id = new.user_id;
  return null;
end $$;
create trigger memberships_assignments after update of ended_at on memberships for each row
  when (old.ended_at is null and new.ended_at is not null) execute function end_assignments();

-- What was to be sent and is no message, or not yet: the timeline shows it among the messages.
create index operations_unsent on operations (account_id, chat_id, created_at desc, id desc)
  where state in ('queued', 'submitting', 'refused', 'ambiguous');

create table notes (
  id uuid primary key,
  workspace_id uuid not null,
  account_id text not null,
  chat_id bigint not null,
  author_id uuid not null,
  text text not null check (char_length(text) between 1 and 4096),
  created_at timestamptz(3) not null default domain_now(),
  foreign key (account_id, chat_id) references chats on delete cascade,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id),
  foreign key (workspace_id, author_id) references memberships
);
create index notes_timeline on notes (account_id, chat_id, created_at desc, id desc);
