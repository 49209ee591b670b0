-- A message that the team writes to a person by hand ends the sequences that ask for it.

alter table campaigns add column stop_on_own_message boolean not null default false;

-- Messages to people that may be written by hand and are not decided yet: sends of people at the dashboard, and messages that the
-- platform shows as ours and that carry no random id. A row goes once it is decided and no sequence can still depend on it.
create table hand_messages (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  account_id text not null,
  platform text not null,
  -- The person's number, which is that of the private chat in every account.
  chat_id bigint not null check (chat_id > 0),
  -- A send of a person at the dashboard, in the ledger.
  operation_id uuid unique,
  -- A message that the platform has shown.
  message_id bigint,
  sent_at timestamptz,
  unique (account_id, chat_id, message_id),
  check ((operation_id is null) = (message_id is not null) and (message_id is null) = (sent_at is null)),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index hand_messages_person on hand_messages (workspace_id, chat_id);

-- From the moment at which a person sends, the follow-ups wait for the outcome. Keys, and the agents that use them, have a
-- `key_id`; campaigns and broadcasts never queue a row; a row that a journal puts back has no user.
create function note_send_by_hand() returns trigger language plpgsql as $$
begin
  insert into hand_messages (id, workspace_id, account_id, platform, chat_id, operation_id)
  select gen_random_uuid(), new.workspace_id, a.id, a.platform, new.chat_id, new.id
  from accounts a where a.id = new.account_id and a.workspace_id = new.workspace_id
  on conflict do nothing;
  return null;
end $$;
create trigger operations_by_hand after insert or update of state on operations for each row
  when (new.state = 'queued' and new.key_id is null and new.user_id is not null and new.chat_id > 0
    and new.kind in ('send_message', 'start_chat_text'))
  execute function note_send_by_hand();
