-- The platform counts sends, look-ups and reading apart: a wait for one stops only that. `flood_until` is the wait for sends.
alter table account_hosts
  add column lookup_flood_until timestamptz,
  add column reading_flood_until timestamptz,
  -- Since when the platform refuses the account's first messages, until an operator enables it again.
  add column cold_stopped_at timestamptz,
  -- Since when updates of the account are missing; null once its chats were fetched again. Campaigns wait meanwhile.
  add column gap_since timestamptz;

-- The day of the first connection, if the platform allows a new account only a few strangers a day.
alter table accounts add column cold_ramp_from date;

-- `chats_total` counts the chats listed so far, `chats_expected` is how many the platform says there are. `history_total` of
-- them get their history in the first sync, the others when a user opens them.
alter table account_sync add column chats_expected int, add column history_total int;
update account_sync set history_total = chats_total where phase in ('history', 'done');

-- Since when a worker found the database on a disk that did not know it, with no other worker alive: it may be a copy, and a
-- platform destroys a session that the original uses too. Null once an operator has switched sending on.
alter table instance add column unconfirmed_since timestamptz;

-- The newest message that was stored before updates went missing: history is fetched back to it.
alter table chat_sync add column gap_after bigint;
create index chat_sync_gap on chat_sync (account_id) where gap_after is not null;
