-- As before (0024), but a change that moves no recipient counts nothing and locks nothing: a look-up that ties one to its person, and
-- messages that were read. Before, each rewrote the row of the campaign's account, because the recipient is due.
create or replace function count_moved_recipients() returns trigger language plpgsql as $$
begin
  -- Not a join of the two, which takes the square of the time where it was planned for few rows.
  if not exists (
    select campaign_id, account_id, status, next_action_at from new_rows
    except all
    select campaign_id, account_id, status, next_action_at from old_rows) then
    return null;
  end if;
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

-- As before (0057), and a campaign of chats, which takes no keys, is known by its kind alone: it looked for a key as well.
create or replace function take_person() returns trigger language plpgsql as $$
begin
  if (select k.kind from campaigns k where k.id = new.campaign_id) <> 'contacts' then
    return null;
  end if;
  insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
  values (new.campaign_id, new.person_id, new.workspace_id, new.id)
  on conflict do nothing;
  if not found and new.step = 0 and new.status = 'submitting' and new.unknown_since is null and exists (
      select from campaign_people t where t.campaign_id = new.campaign_id and t.person_id = new.person_id
        and t.recipient_id <> new.id) then
    raise exception 'another recipient of the campaign is the same person' using errcode = 'unique_violation';
  end if;
  return null;
end $$;
