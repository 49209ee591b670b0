-- Campaigns that run: who is written to next, what was used of an account's day, and one operation for each message.

-- A campaign's statuses and how they follow each other. The guard below refuses every other change.
--
--   scheduled   its time has not come        -> queued (its time comes), paused, cancelled
--   queued      nothing has gone out yet     -> sending (the first submission), paused, cancelled, completed
--   sending                                  -> paused, cancelled, completed (every recipient is final)
--   paused      by a person, or because a    -> scheduled, queued, sending (resumed), cancelled
--               sequence was started too late
--   cancelled, completed                     final
--
-- A recipient's statuses:
--
--   queued      its first message is due at `next_action_at`
--   submitting  the boundary was crossed; with `unknown_since` nobody knows whether the message went out
--   waiting     it has had `step` messages, the next is due at `next_action_at`
--   completed   it has had every message. The only final one that may still change: to replied
--   replied, failed, ambiguous, cancelled, suppressed
--
--   queued      -> submitting, failed, cancelled, suppressed; and what a journal proves: waiting, completed, ambiguous
--   waiting     -> submitting, completed (no step of its track is left), replied, failed, cancelled, suppressed, ambiguous
--   submitting  -> waiting, completed, failed; queued or waiting (released); replied (a reply was heard meanwhile);
--                  ambiguous; cancelled or suppressed (released after a cancel or a suppression)
--   completed   -> replied
--   ambiguous   -> completed (proof), replied, failed (proof that nothing was written, or a person's note)
--   failed      -> completed, replied: the proof came after a person had noted it as not sent
alter table campaigns
  drop constraint campaigns_kind_check,
  -- A broadcast is a campaign of one message that no list shows.
  add constraint campaigns_kind_check check (kind in ('scoped', 'contacts', 'broadcast', 'legacy')),
  drop constraint campaigns_max_followups_check,
  add constraint campaigns_max_followups_check check (max_followups between 0 and 5),
  -- Null: a broadcast, which no quota holds.
  alter column daily_quota_per_account drop not null,
  add check ((daily_quota_per_account is null) = (kind = 'broadcast')),
  -- Whether it has steps: only a sequence can be paused.
  add column sequence boolean not null default false,
  -- Why it is paused: a person asked for it, or its start was missed by more than PARLEY_SCHEDULE_LATENESS.
  add column pause_reason text check (pause_reason in ('requested', 'late')),
  add check ((status = 'paused') = (pause_reason is not null)),
  -- Of a broadcast: how many could have been written to, before the limit of one call.
  add column audience_total integer,
  add check ((audience_total is null) = (kind <> 'broadcast'));
-- What the loop looks at: campaigns that have not ended.
create index campaigns_open on campaigns (status, scheduled_at)
  where status in ('scheduled', 'queued', 'sending', 'paused');

create function guard_campaigns() returns trigger language plpgsql as $$
begin
  if new.status <> old.status and (old.status, new.status) not in (
      ('scheduled', 'queued'), ('scheduled', 'paused'), ('scheduled', 'cancelled'),
      ('queued', 'sending'), ('queued', 'paused'), ('queued', 'cancelled'), ('queued', 'completed'),
      ('sending', 'paused'), ('sending', 'cancelled'), ('sending', 'completed'),
      ('paused', 'scheduled'), ('paused', 'queued'), ('paused', 'sending'), ('paused', 'cancelled')) then
    raise exception 'campaign % must not go from % to %', old.id, old.status, new.status
      using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger campaigns_guard before update of status on campaigns for each row execute function guard_campaigns();

alter table campaign_steps
  add check (wait_hours <= 87600);

alter table campaign_recipients
  -- Its place among the recipients as they were given: the order of pages and of first messages.
  add column position integer not null,
  -- Who is meant, in one form. Chats: `acc_…:<chat>`. Contacts: `username:ada`, `phone:49170…`, `platform_id:77`.
  add column contact text not null,
  -- For placeholders. `name` is the contact's given name, otherwise the platform's, as it was when the person was found.
  add column username text,
  -- Raised by every change (recipients_guard): whoever decided on another version must decide again.
  add column version integer not null default 0,
  -- Of the last message: which variant it was, from which track, and what it became. `step` counts accepted messages,
  -- so the next operation has step_no = step: 0 is the first message, k the k-th follow-up.
  add column variant integer,
  add column branch text check (branch in ('no_reply', 'seen', 'unseen')),
  add column last_message_id bigint,
  -- When the messages were read, by step: reads[step_no + 1]. Null or missing: not yet.
  add column reads timestamptz[] not null default '{}',
  -- The reply, and which message it answered.
  add column replied_at timestamptz,
  add column reply_message_id bigint,
  add column reply_step integer,
  add column reply_variant integer,
  add column reply_branch text,
  -- The reply asked us to stop.
  add column opted_out boolean not null default false,
  -- Why it failed, or was left out.
  add column reason text,
  -- While submitting: since when nobody knows the outcome. `next_action_at` is then when it becomes final.
  add column unknown_since timestamptz,
  add column ended_at timestamptz,
  add check (status not in ('queued', 'waiting') or next_action_at is not null),
  add check (unknown_since is null or status in ('submitting', 'ambiguous')),
  -- What is in flight or has gone out, has gone out to somebody through something.
  add check (status not in ('submitting', 'waiting', 'completed', 'replied')
    or (account_id is not null and chat_id is not null)),
  add unique (campaign_id, contact),
  add unique (campaign_id, position);
drop index campaign_recipients_campaign;
-- Whom an account may write to next, campaign by campaign: a paused one hides nothing behind it.
create index campaign_recipients_due on campaign_recipients (account_id, campaign_id, status, next_action_at, position)
  where status in ('queued', 'waiting');
-- Contacts that no account has taken yet.
create index campaign_recipients_free on campaign_recipients (campaign_id, next_action_at, position)
  where account_id is null and status = 'queued';
-- Unknown outcomes that become final.
create index campaign_recipients_unknown on campaign_recipients (next_action_at) where status = 'submitting';
-- The recipients behind a chat: replies, reads, suppressions.
create index campaign_recipients_chat on campaign_recipients (account_id, chat_id) where chat_id is not null;
-- Contacts by who is meant: suppressions, and who is in another campaign already.
create index campaign_recipients_contact on campaign_recipients (workspace_id, contact)
  where status in ('queued', 'submitting', 'waiting');

create function guard_recipients() returns trigger language plpgsql as $$
begin
  if (new.id, new.campaign_id, new.workspace_id, new.contact, new.position)
      is distinct from (old.id, old.campaign_id, old.workspace_id, old.contact, old.position) then
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
create trigger recipients_guard before update on campaign_recipients for each row execute function guard_recipients();

-- How many recipients of a campaign are in which status, by account: totals, and where an account has work. The account
-- '' stands for contacts that none has taken yet.
create table campaign_accounts (
  campaign_id uuid not null,
  account_id text not null,
  workspace_id uuid not null,
  -- One of the accounts that may take contacts. Such a row is there from the beginning.
  pool boolean not null default false,
  queued integer not null default 0,
  submitting integer not null default 0,
  waiting integer not null default 0,
  completed integer not null default 0,
  replied integer not null default 0,
  failed integer not null default 0,
  ambiguous integer not null default 0,
  cancelled integer not null default 0,
  suppressed integer not null default 0,
  -- A column of its own, so that the index changes only when the last one ends.
  has_open boolean not null generated always as (queued + submitting + waiting > 0) stored,
  primary key (campaign_id, account_id),
  check (least(queued, submitting, waiting, completed, replied, failed, ambiguous, cancelled, suppressed) >= 0),
  foreign key (workspace_id, campaign_id) references campaigns (workspace_id, id)
) with (fillfactor = 70);
create index campaign_accounts_open on campaign_accounts (account_id, campaign_id) where has_open;
create index campaign_accounts_pool on campaign_accounts (account_id, campaign_id) where pool;

-- Rows are changed in the order of their keys, so that two statements never wait for each other in a circle.
create function count_new_recipients() returns trigger language plpgsql as $$
begin
  insert into campaign_accounts as c (campaign_id, account_id, workspace_id,
    queued, submitting, waiting, completed, replied, failed, ambiguous, cancelled, suppressed)
  select campaign_id, coalesce(account_id, ''), workspace_id,
    count(*) filter (where status = 'queued'), count(*) filter (where status = 'submitting'),
    count(*) filter (where status = 'waiting'), count(*) filter (where status = 'completed'),
    count(*) filter (where status = 'replied'), count(*) filter (where status = 'failed'),
    count(*) filter (where status = 'ambiguous'), count(*) filter (where status = 'cancelled'),
    count(*) filter (where status = 'suppressed')
  from new_rows group by 1, 2, 3 order by 1, 2
  on conflict (campaign_id, account_id) do update set
    queued = c.queued + excluded.queued, submitting = c.submitting + excluded.submitting,
    waiting = c.waiting + excluded.waiting, completed = c.completed + excluded.completed,
    replied = c.replied + excluded.replied, failed = c.failed + excluded.failed,
    ambiguous = c.ambiguous + excluded.ambiguous, cancelled = c.cancelled + excluded.cancelled,
    suppressed = c.suppressed + excluded.suppressed;
  return null;
end $$;
create trigger recipients_added after insert on campaign_recipients
  referencing new table as new_rows for each statement execute function count_new_recipients();

-- A statement that moves nobody to another status or account changes nothing here.
create function count_moved_recipients() returns trigger language plpgsql as $$
begin
  insert into campaign_accounts (campaign_id, account_id, workspace_id)
  select distinct n.campaign_id, coalesce(n.account_id, ''), n.workspace_id from new_rows n join old_rows o on o.id = n.id
  where n.account_id is distinct from o.account_id order by 1, 2
  on conflict do nothing;
  with moved as materialized (
    select campaign_id, account_id,
      coalesce(sum(n) filter (where status = 'queued'), 0) as queued,
      coalesce(sum(n) filter (where status = 'submitting'), 0) as submitting,
      coalesce(sum(n) filter (where status = 'waiting'), 0) as waiting,
      coalesce(sum(n) filter (where status = 'completed'), 0) as completed,
      coalesce(sum(n) filter (where status = 'replied'), 0) as replied,
      coalesce(sum(n) filter (where status = 'failed'), 0) as failed,
      coalesce(sum(n) filter (where status = 'ambiguous'), 0) as ambiguous,
      coalesce(sum(n) filter (where status = 'cancelled'), 0) as cancelled,
      coalesce(sum(n) filter (where status = 'suppressed'), 0) as suppressed
    from (
      select campaign_id, coalesce(account_id, '') as account_id, status, sum(n) as n from (
        select campaign_id, account_id, status, -1 as n from old_rows
        union all
        select campaign_id, account_id, status, 1 from new_rows) both_rows
      group by 1, 2, 3 having sum(n) <> 0) changes
    group by 1, 2),
  locked as materialized (
    select c.campaign_id, c.account_id from campaign_accounts c join moved using (campaign_id, account_id)
    order by 1, 2 for no key update of c)
  update campaign_accounts c set
    queued = c.queued + m.queued, submitting = c.submitting + m.submitting, waiting = c.waiting + m.waiting,
    completed = c.completed + m.completed, replied = c.replied + m.replied, failed = c.failed + m.failed,
    ambiguous = c.ambiguous + m.ambiguous, cancelled = c.cancelled + m.cancelled,
    suppressed = c.suppressed + m.suppressed
  from moved m join locked using (campaign_id, account_id)
  where c.campaign_id = m.campaign_id and c.account_id = m.account_id;
  return null;
end $$;
create trigger recipients_moved after update on campaign_recipients
  referencing old table as old_rows new table as new_rows for each statement execute function count_moved_recipients();

-- One operation for each message of a campaign, for ever. No key to campaigns and recipients: a journal may put back a
-- message of a campaign that a restored database does not know, and whose recipients a repeated creation makes again.
alter table operations
  add column campaign_id uuid,
  add column recipient_id uuid,
  -- 0: the first message; k: the k-th follow-up.
  add column step_no integer check (step_no >= 0),
  -- The day of the workspace whose quota it used; null for a broadcast. A refund goes to that day.
  add column quota_day date,
  -- It used the account's allowance for first messages to people who never wrote.
  add column cold boolean not null default false,
  add check ((campaign_id is null) = (recipient_id is null) and (recipient_id is null) = (step_no is null)),
  add unique (recipient_id, step_no);

create or replace function guard_operations() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if old.forgettable and old.state in ('completed', 'refused', 'released')
      and old.finished_at < domain_now() - interval '30 days' then
      return old;
    end if;
    raise exception 'operation % must not be deleted', old.id using errcode = 'restrict_violation';
  end if;
  if (new.id, new.workspace_id, new.kind, new.effect, new.fingerprint, new.forgettable)
      is distinct from (old.id, old.workspace_id, old.kind, old.effect, old.fingerprint, old.forgettable)
    or new.idempotency_key is distinct from old.idempotency_key
    or (new.campaign_id, new.recipient_id, new.step_no)
      is distinct from (old.campaign_id, old.recipient_id, old.step_no)
    or new.random_id is distinct from old.random_id then
    raise exception 'operation % must keep its identity', old.id using errcode = 'restrict_violation';
  end if;
  if new.state = old.state then
    return new;
  end if;
  if (old.state, new.state) not in (
      ('queued', 'submitting'), ('queued', 'released'), ('queued', 'refused'),
      ('submitting', 'completed'), ('submitting', 'refused'), ('submitting', 'released'), ('submitting', 'ambiguous'),
      ('ambiguous', 'completed'), ('ambiguous', 'released'),
      ('released', 'queued'), ('released', 'submitting')) then
    raise exception 'operation % must not go from % to %', old.id, old.state, new.state
      using errcode = 'restrict_violation';
  end if;
  if old.state in ('submitting', 'ambiguous') and new.state in ('released', 'refused')
    and new.reason is distinct from 'platform_refused' and new.reason is distinct from 'never_written' then
    raise exception 'operation % crossed the boundary: only proof leads back', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;

-- When campaigns and broadcasts may write, in the workspace's time zone: `mon-fri 09:00-18:00`. Null: always.
alter table workspaces add column sending_window text check (char_length(sending_window) between 1 and 100);

-- How many first messages a day campaigns may send from it to people who never wrote to it. Null: no limit of its own.
alter table accounts add column cold_per_day integer check (cold_per_day >= 0);

-- `used` counts campaign messages that crossed the boundary on that day, less those that provably did not go out. This
-- counts, in the same way, those of them that were first messages to people who never wrote. `lookups` limits how many
-- contacts may be looked up (PARLEY_START_CHAT_PER_DAY).
alter table account_days add column used_cold integer not null default 0 check (used_cold >= 0);
