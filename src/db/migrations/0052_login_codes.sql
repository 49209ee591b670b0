-- Telegram's service chat brings login codes, and supergroups brought their members to `platform_peers`. Neither is stored any more;
-- what was stored before goes here, and once more when a worker of this release first connects the account: until then a worker of
-- the previous release may still store both. Their events are erased in 0053 and 0054, because a migration locks one hot table.

alter table account_hosts
  -- When the platform last sent the account a login code, or a notice about a login.
  add column login_code_at timestamptz,
  -- Whether a worker of this release has erased them.
  add column tidied boolean not null default false;

-- Events keep their number and kind.
create function erase_events_of_service_chat(account text) returns void language sql as $$
  update events e set data = '{"erased": true}' from accounts a
  where a.id = account and e.workspace_id = a.workspace_id
    and e.data ->> 'chat_id' = 'platform:chat:777000' and e.data ->> 'account_id' = account;
  update outbox o set data = '{"erased": true}' from accounts a
  where a.id = account and o.workspace_id = a.workspace_id
    and o.data ->> 'chat_id' = 'platform:chat:777000' and o.data ->> 'account_id' = account;
$$;

-- Whether there was anything to erase.
create function erase_service_chat(account text) returns boolean language plpgsql as $$
begin
  if not exists (select from messages where account_id = account and chat_id = 777000)
    and not exists (select from chats where account_id = account and chat_id = 777000) then
    return false;
  end if;
  -- Their lists of words have the digits too. Segments of another format are not read, and are built again from the messages.
  update search_segments s set format = 0
  where s.account_id = account and exists (
    select from messages m
    where m.account_id = account and m.chat_id = 777000 and m.sent_at between s.oldest_at and s.newest_at);
  delete from search_pending where account_id = account and chat_id = 777000;
  delete from search_stale where account_id = account and chat_id = 777000;
  delete from media_files where account_id = account and chat_id = 777000;
  delete from messages where account_id = account and chat_id = 777000;
  delete from deleted_messages where account_id = account and chat_id = 777000;
  delete from chat_sync where account_id = account and chat_id = 777000;
  delete from chats where account_id = account and chat_id = 777000;
  delete from contacts where account_id = account and provider_id = 777000;
  delete from platform_peers where account_id = account and number = 777000;
  return true;
end $$;

-- Keeps whom the account knows: people of its chats, contacts, senders in its groups, people whom a campaign has looked up.
create function forget_strangers(account text) returns void language sql as $$
  with known as materialized (
    select platform_user_id as number from accounts where id = account
    union select chat_id from chats where account_id = account
    union select provider_id from contacts where account_id = account
    union select sender_id from messages where account_id = account and chat_id < 0
    union select r.found_id from campaign_recipients r join accounts a on a.workspace_id = r.workspace_id
      where a.id = account and r.found_id is not null
    union select chat_id from campaign_recipients where account_id = account)
  delete from platform_peers p
  where p.account_id = account and p.number > 0 and not exists (select from known k where k.number = p.number);
$$;

-- What a worker calls once for each account, under its lease.
create function tidy_account(account text) returns void language plpgsql as $$
begin
  -- In the sandbox 777000 may be anybody.
  if exists (select from accounts where id = account and platform = 'telegram') then
    if erase_service_chat(account) then
      perform erase_events_of_service_chat(account);
    end if;
    perform forget_strangers(account);
  end if;
  update account_hosts set tidied = true where account_id = account;
end $$;

select erase_service_chat(id), forget_strangers(id) from accounts where platform = 'telegram';
