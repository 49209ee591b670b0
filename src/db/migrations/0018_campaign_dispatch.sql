-- What dispatching campaigns needs besides: one message of each account at a time, and no message to whoever asked to stop.

create index operations_in_flight on operations (account_id) where state = 'submitting' and campaign_id is not null;

-- People by what a suppression names them with.
create index contacts_username on contacts (workspace_id, lower(username)) where username is not null;
create index contacts_phone on contacts (workspace_id, regexp_replace(phone, '\D', '', 'g')) where phone is not null;

-- A second identifier of the same person.
create index campaign_recipients_person on campaign_recipients (campaign_id, chat_id) where chat_id is not null;

-- A new suppression ends everything that waits for that person, in its own transaction, whoever writes it. What is being
-- submitted holds the recipient's row, so either this waits for it and leaves it alone, or it finds the recipient ended.
create function end_suppressed() returns trigger language plpgsql as $$
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
        and regexp_replace(c.phone, '\D', '', 'g') = s.value
      join campaign_recipients r on r.account_id = c.account_id and r.chat_id = c.provider_id),
  locked as materialized (
    select r.id from campaign_recipients r
    where r.id in (select id from found) and r.status in ('queued', 'waiting') order by r.id for update)
  update campaign_recipients r
  set status = 'suppressed', reason = 'suppressed', next_action_at = null, ended_at = domain_now()
  from locked where r.id = locked.id;
  return null;
end $$;
create trigger suppressions_end_recipients after insert on suppressions
  referencing new table as new_rows for each statement execute function end_suppressed();
