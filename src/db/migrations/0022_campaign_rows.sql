-- Phone numbers in one form wherever the suppression list is asked, and totals of campaigns at less cost.

-- As `phoneDigits` in platform/identifier.ts: the digits from the country's code on, however the number is written.
create function phone_digits(phone text) returns text language sql immutable strict parallel safe
  return regexp_replace(regexp_replace(regexp_replace(phone, '\(\s*0\s*\)', '', 'g'), '\D', '', 'g'), '^00', '');

drop index contacts_phone;
create index contacts_phone on contacts (workspace_id, phone_digits(phone)) where phone is not null;

create or replace function forbidden_by_suppression(workspace uuid, account text, person bigint) returns text
language plpgsql volatile as $$
declare
  known_username text;
  known_phone text;
begin
  if not pg_try_advisory_xact_lock_shared(suppressions_lock(workspace)) then
    return 'busy';
  end if;
  select lower(username), phone_digits(phone)
    into known_username, known_phone from contacts where account_id = account and provider_id = person;
  if exists (select from suppressions where workspace_id = workspace and (
      (kind = 'platform_id' and value = person::text)
      or (kind = 'username' and value = known_username)
      or (kind = 'phone' and value = known_phone))) then
    return 'identity_suppressed';
  end if;
  return null;
end $$;

-- As before (0018), but for the form of phone numbers.
create or replace function end_suppressed() returns trigger language plpgsql as $$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  found as materialized (
    select r.id from given s join campaign_recipients r on r.workspace_id = s.workspace_id
      and r.contact = s.kind || ':' || s.value and r.status in ('queued', 'waiting')
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

-- As before (0017) in one pass over the rows, because it runs with every message. A statement that moves nobody to another
-- status or account changes nothing here. Rows are changed in the order of their keys, so that two statements never wait
-- for each other in a circle.
create or replace function count_moved_recipients() returns trigger language plpgsql as $$
begin
  if exists (select from new_rows n join old_rows o on o.id = n.id where n.account_id is distinct from o.account_id) then
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
      sum(case status when 'suppressed' then n else 0 end) as suppressed
    from (
      select campaign_id, account_id, status, -1 as n from old_rows
      union all
      select campaign_id, account_id, status, 1 from new_rows) both_rows
    group by 1, 2),
  locked as materialized (
    select m.* from campaign_accounts c join moved m using (campaign_id, account_id)
    where (m.queued, m.submitting, m.waiting, m.completed, m.replied, m.failed, m.ambiguous, m.cancelled, m.suppressed)
      <> (0, 0, 0, 0, 0, 0, 0, 0, 0)
    order by 1, 2 for no key update of c)
  update campaign_accounts c set
    queued = c.queued + m.queued, submitting = c.submitting + m.submitting, waiting = c.waiting + m.waiting,
    completed = c.completed + m.completed, replied = c.replied + m.replied, failed = c.failed + m.failed,
    ambiguous = c.ambiguous + m.ambiguous, cancelled = c.cancelled + m.cancelled,
    suppressed = c.suppressed + m.suppressed
  from locked m where c.campaign_id = m.campaign_id and c.account_id = m.account_id;
  return null;
end $$;
