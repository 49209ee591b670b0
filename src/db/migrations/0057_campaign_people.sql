-- Recipients point to the person, and a campaign of contacts writes to a person once: that is a key of its own.

-- The person with this number on the account's platform. Gets a row here if nobody has seen them yet.
create function person_of(workspace uuid, account text, person_number bigint) returns uuid language plpgsql volatile as $$
declare
  on_platform text;
  person uuid;
begin
  select a.platform, p.id into on_platform, person
  from accounts a left join people p
    on p.workspace_id = workspace and p.platform = a.platform and p.number = person_number
  where a.id = account;
  if person is null and person_number > 0 and on_platform is not null then
    insert into people (id, workspace_id, platform, number) values (gen_random_uuid(), workspace, on_platform, person_number)
    on conflict do nothing;
    select p.id into person from people p
    where p.workspace_id = workspace and p.platform = on_platform and p.number = person_number;
  end if;
  return person;
end $$;

-- The people whom an entry of the suppression list is about at this moment; the names that a person has now, as `kind:value`;
-- whether the account knows names of the person. Other slices ask these and `is_listed`, and join no names themselves.
create function people_named(workspace uuid, name_kind text, name_value text) returns setof people
language sql stable as $$
  select p.* from (
    select n.person_id from person_names n
    where n.workspace_id = workspace and n.kind = name_kind and n.value = name_value and n.until is null) n
  cross join lateral (select * from people p where p.id = n.person_id) p
  union
  select p.* from (
    select distinct a.platform from accounts a where a.workspace_id = workspace and name_kind = 'platform_id') a
  cross join lateral (
    select * from people p where p.workspace_id = workspace and p.platform = a.platform
      and p.number = case when name_value ~ '^[0-9]{1,18}$' then name_value::bigint end) p;
$$;
create function names_of(person uuid) returns setof text language sql stable as $$
  select distinct n.kind || ':' || n.value from person_names n where n.person_id = person and n.until is null;
$$;
create function knows_names(person uuid, account text) returns boolean language sql stable as $$
  select exists (select from person_names n where n.person_id = person and n.account_id = account);
$$;
-- Until every contact of before was read, some people have no row: the contacts with this name, about which `is_listed` asks as
-- well. None from then on, because a contact keeps a name that passed on until its account sees that.
create function unread_contacts_named(workspace uuid, name_kind text, name_value text)
returns table (account_id text, number bigint) language sql stable as $$
  select c.account_id, c.provider_id from contacts c
  where name_kind = 'username' and c.workspace_id = workspace and lower(c.username) = name_value
    and exists (select from people_backfill where done_at is null)
  union all
  select c.account_id, c.provider_id from contacts c
  where name_kind = 'phone' and c.workspace_id = workspace and phone_digits(c.phone) = name_value
    and exists (select from people_backfill where done_at is null);
$$;

create table campaign_people (
  campaign_id uuid not null,
  person_id uuid not null references people (id),
  workspace_id uuid not null,
  -- The recipient whose first message is in flight, unknown or sent.
  recipient_id uuid not null,
  primary key (campaign_id, person_id),
  foreign key (workspace_id, campaign_id) references campaigns (workspace_id, id)
);

alter table campaign_recipients
  -- Whom a look-up found, or the person of the chat. Kept when another account of the pool takes the recipient over.
  add column person_id uuid references people (id),
  -- What the platform calls the person, who may be another one tomorrow: it goes with the tie. `name` is what the caller gave.
  add column told_name text,
  -- When the platform last said who has the recipient's name. A first message is not sent an hour after it.
  add column asked_at timestamptz,
  -- When the platform said that nobody has it, though a known person had. Said twice, the recipient ends.
  add column unfound_at timestamptz,
  -- Asking about the person known did not show that the name is theirs: only a look-up tells.
  add column must_look_up boolean not null default false;
create index campaign_recipients_tied on campaign_recipients (workspace_id, person_id)
  where person_id is not null and ended_at is null;

-- Takes over what processes of the release before write, and what is put back after a restore: a chat, and nobody tied to it.
create function tie_recipient() returns trigger language plpgsql as $$
begin
  if new.account_id is not null then
    new.person_id := person_of(new.workspace_id, new.account_id, new.chat_id);
    -- Only a process of the release before writes what its look-up found.
    if new.found_id = new.chat_id and tg_op = 'UPDATE' and old.found_id is null then
      perform learn_names(new.workspace_id, new.account_id, array[new.found_id], array[new.found_username],
        array[new.found_phone]);
    end if;
  end if;
  return new;
end $$;
create trigger recipients_tie_new before insert on campaign_recipients for each row
  when (new.chat_id is not null and new.person_id is null) execute function tie_recipient();
create trigger recipients_tie before update on campaign_recipients for each row
  when (new.chat_id is not null and new.chat_id is distinct from old.chat_id
    and new.person_id is not distinct from old.person_id)
  execute function tie_recipient();

-- A recipient has its person while its first message is in flight or unknown, and once that was sent. The one that crosses
-- first takes the person; the second must not cross, and ends as a duplicate when it reads the key (`locked-recipients.ts`).
-- What is put back after a restore was sent: it is recorded, whichever recipient has the key.
create function take_person() returns trigger language plpgsql as $$
begin
  insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
  select new.campaign_id, new.person_id, new.workspace_id, new.id
  from campaigns k where k.id = new.campaign_id and k.kind = 'contacts'
  on conflict do nothing;
  if not found and new.step = 0 and new.status = 'submitting' and new.unknown_since is null and exists (
      select from campaign_people t where t.campaign_id = new.campaign_id and t.person_id = new.person_id
        and t.recipient_id <> new.id) then
    raise exception 'another recipient of the campaign is the same person' using errcode = 'unique_violation';
  end if;
  return null;
end $$;
create trigger recipients_take_person after update on campaign_recipients for each row
  when (new.person_id is not null and (new.step > 0 or new.status in ('submitting', 'ambiguous'))
    and not (old.step > 0 or old.status in ('submitting', 'ambiguous')))
  execute function take_person();

-- The first message did not go out: another recipient that is the same person may have it.
create function give_person_back() returns trigger language plpgsql as $$
begin
  delete from campaign_people t
  where t.campaign_id = old.campaign_id and t.person_id = old.person_id and t.recipient_id = old.id;
  return null;
end $$;
create trigger recipients_give_back after update on campaign_recipients for each row
  when (old.person_id is not null and (old.step > 0 or old.status in ('submitting', 'ambiguous'))
    and not (new.step > 0 or new.status in ('submitting', 'ambiguous')))
  execute function give_person_back();

-- How far the recipients of earlier releases were tied (`capabilities/people/loops.ts`).
alter table people_backfill add column after_recipient_id uuid, add column tied_at timestamptz;
update people_backfill set tied_at = domain_now() where not exists (select from campaign_recipients);

-- Ties the next recipients of before, by their id, and takes the people to whom they have written.
create function tie_recipients(after uuid, most integer, out read_rows integer, out last_id uuid)
language plpgsql volatile as $$
begin
  with page as materialized (
    select r.id from campaign_recipients r where after is null or r.id > after order by r.id limit most),
  held as materialized (
    select r.id, r.campaign_id, r.workspace_id, r.account_id, r.chat_id, r.person_id, r.status, r.step
    from page p cross join lateral (select * from campaign_recipients r where r.id = p.id for update) r),
  tied as (
    update campaign_recipients r set person_id = person_of(h.workspace_id, h.account_id, h.chat_id)
    from held h where r.id = h.id and h.person_id is null and h.chat_id is not null and h.account_id is not null
    returning r.id, r.campaign_id, r.workspace_id, r.person_id, r.status, r.step),
  known as (
    select id, campaign_id, workspace_id, person_id, status, step from tied
    union all
    select id, campaign_id, workspace_id, person_id, status, step from held where person_id is not null),
  taken as (
    insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
    select w.campaign_id, w.person_id, w.workspace_id, w.id
    from known w join campaigns k on k.id = w.campaign_id and k.kind = 'contacts'
    where w.person_id is not null and (w.step > 0 or w.status in ('submitting', 'ambiguous'))
    order by 1, 2
    on conflict do nothing)
  select count(*)::int, (array_agg(id order by id desc))[1] into read_rows, last_id from page;
end $$;

-- As before (0056), by the person of a recipient instead of names that the recipient kept. `offset 0`: each look-up stays one by
-- key, also in a plan from when there were fewer recipients. The change at the end is a join, so no plan may read the table from its
-- beginning.
create or replace function end_suppressed() returns trigger language plpgsql
set enable_seqscan = off as $$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  tied as materialized (
    select p.* from given s cross join lateral people_named(s.workspace_id, s.kind, s.value) p),
  named as materialized (
    select workspace_id, kind || ':' || value as contact from given
    union
    select t.workspace_id, n.name from tied t cross join lateral names_of(t.id) as n (name)
    union
    select workspace_id, 'platform_id:' || number from tied
    union
    select workspace_id, kind || ':' || overlay(value placing '0' from length_of_code + 1 for 0)
    from given cross join generate_series(1, 3) as length_of_code
    where kind = 'phone' and phone_digits(overlay(value placing '0' from length_of_code + 1 for 0)) = value),
  found as materialized (
    select r.id from named s cross join lateral (
      select r.id from campaign_recipients r where r.workspace_id = s.workspace_id and r.contact = s.contact
        and r.ended_at is null and r.status in ('queued', 'waiting') offset 0) r
    union all
    select r.id from given s join accounts a on a.workspace_id = s.workspace_id and s.number is not null
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = a.id and r.chat_id = s.number offset 0) r
    union all
    select r.id from tied t join accounts a on a.workspace_id = t.workspace_id and a.platform = t.platform
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = a.id and r.chat_id = t.number offset 0) r
    union all
    select r.id from tied t cross join lateral (
      select r.id from campaign_recipients r where r.workspace_id = t.workspace_id and r.person_id = t.id
        and r.ended_at is null offset 0) r
    union all
    select r.id from given s cross join lateral unread_contacts_named(s.workspace_id, s.kind, s.value) c
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = c.account_id and r.chat_id = c.number offset 0) r),
  locked as materialized (
    select r.id from (select distinct id from found order by id) f cross join lateral (
      select r.id from campaign_recipients r where r.id = f.id and r.status in ('queued', 'waiting') for update) r)
  -- By an array: a join may read every recipient, because nobody can estimate how many are locked.
  update campaign_recipients r
  set status = 'suppressed', reason = 'suppressed', next_action_at = null, ended_at = domain_now()
  where r.id = any(array(select id from locked));
  return null;
end $$;

-- As before (0052), with the people to whom recipients are tied.
create or replace function forget_strangers(account text) returns void language sql as $$
  with known as materialized (
    select platform_user_id as number from accounts where id = account
    union select chat_id from chats where account_id = account
    union select provider_id from contacts where account_id = account
    union select sender_id from messages where account_id = account and chat_id < 0
    union select p.number from accounts a
      join campaign_recipients r on r.workspace_id = a.workspace_id and r.person_id is not null and r.ended_at is null
      join people p on p.id = r.person_id
      where a.id = account
    union select chat_id from campaign_recipients where account_id = account)
  delete from platform_peers p
  where p.account_id = account and p.number > 0 and not exists (select from known k where k.number = p.number);
$$;
