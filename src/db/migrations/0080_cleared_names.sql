-- Notes and recipients whose content was cleared, and the search index's part of clearing messages.

-- A cleared note keeps its row: who wrote one, where and when.
alter table notes
  add column cleared_at timestamptz,
  drop constraint notes_text_check,
  add constraint notes_text_check check (char_length(text) <= 4096 and (text = '') = (cleared_at is not null));
create index notes_uncleared on notes (workspace_id, created_at) where cleared_at is null;

alter table campaigns
  -- The position of the last recipient whose names were cleared; null: none yet.
  add column names_cleared_to int,
  add column names_cleared_at timestamptz;
create index campaigns_uncleared on campaigns (workspace_id, coalesce(completed_at, cancelled_at))
  where names_cleared_at is null and status in ('completed', 'cancelled');

-- As before (0017), and the name that an ended recipient was given as may be cleared: `cleared:` and something that names nobody.
create or replace function guard_recipients() returns trigger language plpgsql as $$
begin
  if (new.id, new.campaign_id, new.workspace_id, new.position)
      is distinct from (old.id, old.campaign_id, old.workspace_id, old.position)
    or (new.contact is distinct from old.contact
      and (new.contact not like 'cleared:%' or old.status in ('queued', 'submitting', 'waiting'))) then
    raise exception 'recipient % must keep its identity', old.id using errcode = 'restrict_violation';
  end if;
  if new.status <> old.status and (old.status, new.status) not in (
      ('queued', 'submitting'), ('queued', 'failed'), ('queued', 'cancelled'), ('queued', 'suppressed'),
      ('queued', 'waiting'), ('queued', 'completed'), ('queued', 'ambiguous'),
      ('waiting', 'submitting'), ('waiting', 'completed'), ('waiting', 'replied'), ('waiting', 'failed'),
      ('waiting', 'cancelled'), ('waiting', 'suppressed'), ('waiting', 'ambiguous'),
      ('submitting', 'queued'), ('submitting', 'waiting'), ('submitting', 'completed'), ('submitting', 'replied'),
      ('submitting', 'failed'), ('submitting', 'ambiguous'), ('submitting', 'cancelled'), ('submitting', 'suppressed'),
      ('completed', 'replied'),
      ('ambiguous', 'completed'), ('ambiguous', 'replied'), ('ambiguous', 'failed'),
      ('failed', 'completed'), ('failed', 'replied')) then
    raise exception 'recipient % must not go from % to %', old.id, old.status, new.status
      using errcode = 'restrict_violation';
  end if;
  new.version := old.version + 1;
  return new;
end $$;

-- Accounts whose search index still has words of cleared messages. A merge without them is due, and takes them out.
create table search_forgetting (
  account_id text primary key,
  workspace_id uuid not null,
  due_at timestamptz not null,
  -- Raised by each transaction that clears: a row that changed meanwhile is not deleted.
  turn bigint not null default 1,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
