-- When an account has something to do for a campaign again, so that recipients who wait for weeks cost nothing meanwhile.

alter table campaign_accounts
  -- Nobody who is queued or waiting here is due before it. It may be too early, but never too late: whoever makes somebody
  -- due lowers it (the triggers below), and the loop `campaigns` raises it under the lock of the row.
  add column due_at timestamptz not null default '-infinity';
drop index campaign_accounts_open;
create index campaign_accounts_open on campaign_accounts (account_id, due_at) where has_open;

-- As before (0017), and `due_at`.
create or replace function count_new_recipients() returns trigger language plpgsql as $$
begin
  insert into campaign_accounts as c (campaign_id, account_id, workspace_id,
    queued, submitting, waiting, completed, replied, failed, ambiguous, cancelled, suppressed, due_at)
  select campaign_id, coalesce(account_id, ''), workspace_id,
    count(*) filter (where status = 'queued'), count(*) filter (where status = 'submitting'),
    count(*) filter (where status = 'waiting'), count(*) filter (where status = 'completed'),
    count(*) filter (where status = 'replied'), count(*) filter (where status = 'failed'),
    count(*) filter (where status = 'ambiguous'), count(*) filter (where status = 'cancelled'),
    count(*) filter (where status = 'suppressed'),
    coalesce(min(next_action_at) filter (where status in ('queued', 'waiting')), 'infinity')
  from new_rows group by 1, 2, 3 order by 1, 2
  on conflict (campaign_id, account_id) do update set
    queued = c.queued + excluded.queued, submitting = c.submitting + excluded.submitting,
    waiting = c.waiting + excluded.waiting, completed = c.completed + excluded.completed,
    replied = c.replied + excluded.replied, failed = c.failed + excluded.failed,
    ambiguous = c.ambiguous + excluded.ambiguous, cancelled = c.cancelled + excluded.cancelled,
    suppressed = c.suppressed + excluded.suppressed, due_at = least(c.due_at, excluded.due_at);
  return null;
end $$;

-- As before (0022), and `due_at`. Where somebody is queued or waiting the row is locked whatever it says as this statement
-- sees it: it may be raised at this very moment by somebody who does not see these recipients.
create or replace function count_moved_recipients() returns trigger language plpgsql as $$
begin
  -- Without a join of the two, which takes the square of the time where it was planned for few rows.
  if exists (select campaign_id, account_id from new_rows except select campaign_id, account_id from old_rows) then
    insert into campaign_accounts (campaign_id, account_id, workspace_id)
    select distinct campaign_id, coalesce(account_id, ''), workspace_id from new_rows order by 1, 2
    on conflict do nothing;
  end if;
  with moved as materialized (
    select campaign_id, coalesce(account_id, '') as account_id,
      sum(case status when 'queued' then n else 0 end) as queued,
      sum(case status when 'submitting' then n else 0 end) as submitting,
      sum(case status when 'waiting' then n else 0 end) as waiting,
      sum(case status when 'completed' then n else 0 end) as completed,
      sum(case status when 'replied' then n else 0 end) as replied,
      sum(case status when 'failed' then n else 0 end) as failed,
      sum(case status when 'ambiguous' then n else 0 end) as ambiguous,
      sum(case status when 'cancelled' then n else 0 end) as cancelled,
      sum(case status when 'suppressed' then n else 0 end) as suppressed,
      min(next_action_at) as due_at
    from (
      select campaign_id, account_id, status, -1 as n, null as next_action_at from old_rows
      union all
      select campaign_id, account_id, status, 1, case when status in ('queued', 'waiting') then next_action_at end
      from new_rows) both_rows
    group by 1, 2),
  locked as materialized (
    select m.* from campaign_accounts c join moved m using (campaign_id, account_id)
    where m.due_at is not null
      or (m.queued, m.submitting, m.waiting, m.completed, m.replied, m.failed, m.ambiguous, m.cancelled, m.suppressed)
        <> (0, 0, 0, 0, 0, 0, 0, 0, 0)
    order by 1, 2 for no key update of c)
  update campaign_accounts c set
    queued = c.queued + m.queued, submitting = c.submitting + m.submitting, waiting = c.waiting + m.waiting,
    completed = c.completed + m.completed, replied = c.replied + m.replied, failed = c.failed + m.failed,
    ambiguous = c.ambiguous + m.ambiguous, cancelled = c.cancelled + m.cancelled,
    suppressed = c.suppressed + m.suppressed, due_at = least(c.due_at, m.due_at)
  from locked m where c.campaign_id = m.campaign_id and c.account_id = m.account_id;
  return null;
end $$;

-- While nobody is queued or waiting, an index of those is empty, and to the server one empty index is as good as another:
-- after statistics of such a moment it looked for who is due among all open recipients. Now only the right one will do.
alter table campaign_recipients
  add check (ended_at is null or status not in ('queued', 'submitting', 'waiting'));
drop index campaign_recipients_contact;
create index campaign_recipients_contact on campaign_recipients (workspace_id, contact) where ended_at is null;

-- As before (0022), but for the condition of that index.
create or replace function end_suppressed() returns trigger language plpgsql as $$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  found as materialized (
    select r.id from given s join campaign_recipients r on r.workspace_id = s.workspace_id
      and r.contact = s.kind || ':' || s.value and r.ended_at is null and r.status in ('queued', 'waiting')
    union all
    select r.id from given s join accounts a on a.workspace_id = s.workspace_id
      join campaign_recipients r on r.account_id = a.id and r.chat_id = s.number
    union all
    select r.id from given s join contacts c on s.kind = 'username' and c.workspace_id = s.workspace_id
        and lower(c.username) = s.value
      join campaign_recipients r on r.account_id = c.account_id and r.chat_id = c.provider_id
    union all
    select r.id from given s join contacts c on s.kind = 'phone' and c.workspace_id = s.workspace_id
        and phone_digits(c.phone) = s.value
      join campaign_recipients r on r.account_id = c.account_id and r.chat_id = c.provider_id),
  locked as materialized (
    select r.id from campaign_recipients r
    where r.id in (select id from found) and r.status in ('queued', 'waiting') order by r.id for update)
  update campaign_recipients r
  set status = 'suppressed', reason = 'suppressed', next_action_at = null, ended_at = domain_now()
  from locked where r.id = locked.id;
  return null;
end $$;
