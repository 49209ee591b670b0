-- A person is a row: one for each workspace, platform and number on the platform, whichever accounts see them and whatever
-- they are called. Contacts stay what an account's address book shows; who somebody is, and under which names they were
-- known when, is here.

create table people (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  platform text not null,
  -- Their number on the platform, which never changes. It is also the number of their private chat.
  number bigint not null check (number > 0),
  first_seen_at timestamptz not null default domain_now(),
  unique (workspace_id, platform, number)
);

-- The names that a person has or had, in the suppression list's form, by the account that saw them. A name that passes to
-- another person keeps its row here, with the time at which it passed: a question about then is answered as of then.
create table person_names (
  person_id uuid not null references people (id),
  kind text not null check (kind in ('username', 'phone')),
  value text not null check (value <> ''),
  account_id text not null,
  workspace_id uuid not null references workspaces (id),
  platform text not null,
  first_seen_at timestamptz not null default domain_now(),
  -- Null: from before this table, so nobody knows how old it is. Otherwise written at most once a day.
  last_seen_at timestamptz,
  -- When the person was first seen without it, or somebody else with it. Null: they have it, as far as is known.
  until timestamptz,
  -- A username besides the one that the platform shows: that one says nothing about this one.
  second boolean not null default false,
  primary key (person_id, kind, value, account_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index person_names_value on person_names (workspace_id, kind, value);

-- How far the contacts of earlier releases were read (`capabilities/people/loops.ts`).
create table people_backfill (
  one boolean primary key default true check (one),
  after_account_id text not null default '',
  after_number bigint not null default 0,
  done_at timestamptz
);
insert into people_backfill (done_at)
select case when not exists (select from contacts) then domain_now() end;

-- Stores what an account sees of people at this moment: numbers, usernames (null: the person has none) and phone numbers
-- (null: the platform does not show one, which says nothing). A name that the person no longer has, or that another person
-- has now, ends. Rows are locked before they change, and inserted, in one order: a name that changes hands touches two people,
-- and two accounts may see the same change at the same time. `offset 0`: each look-up stays one by key, also in a plan from when
-- there were fewer names; a join would read all names of the workspace. The change of names that end is a join, so no plan may read
-- the whole table, nor the whole of an index.
-- `asked_kind`, `asked_value`: the name under which the platform was asked for the only one of `numbers`, who has it or not. It need
-- not be among what the platform shows: a hidden phone number, a second username.
create function learn_names(workspace uuid, account text, numbers bigint[], usernames text[], phones text[],
  asked_kind text default null, asked_value text default null, has boolean default true) returns void
language plpgsql volatile set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  seen_at timestamptz := domain_now();
  on_platform text := (select a.platform from accounts a where a.id = account and a.workspace_id = workspace);
begin
  insert into people (id, workspace_id, platform, number, first_seen_at)
  select gen_random_uuid(), workspace, on_platform, g.number, seen_at
  from unnest(numbers) as g (number)
  where g.number > 0 and not exists (
    select from people p where p.workspace_id = workspace and p.platform = on_platform and p.number = g.number offset 0)
  order by g.number
  on conflict do nothing;

  with shown as materialized (
    select p.id as person_id, t.kind, t.value, false as second
    from unnest(numbers, usernames, phones) as g (number, username, phone)
    cross join lateral (
      select p.id from people p
      where p.workspace_id = workspace and p.platform = on_platform and p.number = g.number limit 1) p
    cross join lateral (values
      ('username', nullif(lower(g.username), '')), ('phone', nullif(phone_digits(g.phone), ''))) as t (kind, value)
    where t.kind = 'username' or t.value is not null),
  asked as materialized (
    select asked_kind as kind, case asked_kind when 'phone' then phone_digits(asked_value) else lower(asked_value) end as value
    where asked_kind in ('username', 'phone')),
  seen as materialized (
    select * from shown
    union all
    select distinct s.person_id, a.kind, a.value, a.kind = 'username'
    from shown s cross join asked a
    where has and a.value <> '' and not exists (
      select from shown o where o.person_id = s.person_id and o.kind = a.kind and o.value = a.value)),
  changing as materialized (
    -- Of the same person: another value ends, this one was seen again.
    select n.person_id, n.kind, n.value, n.account_id
    from seen s cross join lateral (
      select * from person_names n where n.person_id = s.person_id and n.kind = s.kind offset 0) n
    where case when n.value is distinct from s.value then n.until is null and not n.second and not exists (
        select from seen o where o.person_id = n.person_id and o.kind = n.kind and o.value = n.value)
      else n.account_id = account and (n.until is not null or n.last_seen_at is null or n.second <> s.second
        or n.last_seen_at < seen_at - interval '1 day') end
    union
    -- The platform was asked, and they no longer have it. A phone number that it does not show may still be theirs.
    select n.person_id, n.kind, n.value, n.account_id
    from asked a cross join shown s cross join lateral (
      select * from person_names n where n.person_id = s.person_id and n.kind = a.kind and n.value = a.value offset 0) n
    where not has and a.kind = 'username' and n.until is null
    union
    -- Of another person: the name is no longer theirs.
    select n.person_id, n.kind, n.value, n.account_id
    from seen s cross join lateral (
      select * from person_names n where n.workspace_id = workspace and n.kind = s.kind and n.value = s.value
      offset 0) n
    where n.platform = on_platform and n.person_id <> s.person_id and n.until is null),
  locked as materialized (
    select n.person_id, n.kind, n.value, n.account_id
    from (select * from changing order by person_id, kind, value, account_id) c
    cross join lateral (
      select * from person_names n
      where n.person_id = c.person_id and n.kind = c.kind and n.value = c.value and n.account_id = c.account_id
      for update) n),
  ended as (
    update person_names n set until = seen_at from locked l
    where n.person_id = l.person_id and n.kind = l.kind and n.value = l.value and n.account_id = l.account_id
      and n.until is null and not exists (
        select from seen s where s.person_id = l.person_id and s.kind = l.kind and s.value = l.value))
  insert into person_names (person_id, kind, value, account_id, workspace_id, platform, first_seen_at, last_seen_at, second)
  select s.person_id, s.kind, s.value, account, workspace, on_platform, seen_at, seen_at, s.second
  from seen s
  where s.value is not null and (select count(*) from locked) >= 0 and not exists (
    select from person_names n
    where n.person_id = s.person_id and n.kind = s.kind and n.value = s.value and n.account_id = account
      and n.second = s.second and n.until is null and n.last_seen_at >= seen_at - interval '1 day' offset 0)
  order by s.person_id, s.kind, s.value
  on conflict (person_id, kind, value, account_id) do update set last_seen_at = seen_at, until = null,
    second = excluded.second;
end $$;

-- Whatever stores contacts teaches names, also a process of the release before this one.
create function learn_new_contacts() returns trigger language plpgsql as $$
begin
  perform learn_names(g.workspace_id, g.account_id, g.numbers, g.usernames, g.phones)
  from (
    select workspace_id, account_id, array_agg(provider_id order by provider_id) as numbers,
      array_agg(username order by provider_id) as usernames, array_agg(phone order by provider_id) as phones
    from new_rows group by 1, 2 order by 2) g;
  return null;
end $$;
create trigger contacts_new_names after insert on contacts
  referencing new table as new_rows for each statement execute function learn_new_contacts();

-- A contact keeps a phone number that the platform leaves out, so only one that changes was seen now.
create function learn_changed_contacts() returns trigger language plpgsql as $$
begin
  perform learn_names(g.workspace_id, g.account_id, g.numbers, g.usernames, g.phones)
  from (
    select n.workspace_id, n.account_id, array_agg(n.provider_id order by n.provider_id) as numbers,
      array_agg(n.username order by n.provider_id) as usernames,
      array_agg(case when n.phone is distinct from o.phone then n.phone end order by n.provider_id) as phones
    from new_rows n join old_rows o on o.account_id = n.account_id and o.provider_id = n.provider_id
    where (n.username, n.phone) is distinct from (o.username, o.phone)
    group by 1, 2 order by 2) g;
  return null;
end $$;
create trigger contacts_changed_names after update on contacts
  referencing old table as old_rows new table as new_rows for each statement execute function learn_changed_contacts();

-- The one question about the suppression list: whether it has this person. `number` is theirs on the account's platform, or
-- null if only names are known; `known` has names as `kind:value` in the list's form. An entry by name stops the person who had
-- the name at any time while the entry stood, under all their names and for every account. `until` null: they have it now.
create function is_listed(workspace uuid, account text, number bigint, known text[]) returns boolean
language plpgsql stable as $$
begin
  if exists (
    select from (
      select split_part(name, ':', 1) as kind, split_part(name, ':', 2) as value, null::timestamptz as until
      from unnest(known) as name
      union all
      select 'platform_id', is_listed.number::text, null
      union all
      select n.kind, n.value, case when bool_or(n.until is null) then null else max(n.until) end
      from accounts a
      cross join lateral (
        select p.id from people p
        where p.workspace_id = workspace and p.platform = a.platform and p.number = is_listed.number limit 1) p
      cross join lateral (select * from person_names n where n.person_id = p.id) n
      where a.id = account
      group by 1, 2
      union all
      -- Until every contact of before was read, some people have no row.
      select t.kind, t.value, null
      from contacts c
      cross join lateral (values ('username', lower(c.username)), ('phone', phone_digits(c.phone))) as t (kind, value)
      where c.account_id = account and c.provider_id = is_listed.number
        and exists (select from people_backfill where done_at is null)) named
    cross join lateral (
      select from suppressions s
      where s.workspace_id = workspace and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at)
      limit 1) s) then
    return true;
  end if;
  -- Nobody was looked up yet: asks about the people who have one of the names now, as far as any account knows.
  return is_listed.number is null and exists (
    select from accounts a
    cross join lateral (
      select p.number from unnest(known) as name
      cross join lateral (
        select * from person_names n where n.workspace_id = workspace and n.kind = split_part(name, ':', 1)
          and n.value = split_part(name, ':', 2) offset 0) n
      cross join lateral (select * from people p where p.id = n.person_id limit 1) p
      where n.platform = a.platform and n.until is null
      union
      select split_part(name, ':', 2)::bigint from unnest(known) as name
      where name ~ '^platform_id:[0-9]{1,18}$') p
    where a.id = account and is_listed(workspace, account, p.number, '{}'));
end $$;

create or replace function forbidden_by_suppression(workspace uuid, account text, person bigint) returns text
language plpgsql volatile as $$
begin
  return recipient_forbidden(workspace, account, person, '{}');
end $$;

create or replace function recipient_forbidden(workspace uuid, account text, person bigint, known text[]) returns text
language plpgsql volatile as $$
begin
  if not pg_try_advisory_xact_lock_shared(suppressions_lock(workspace)) then
    return 'busy';
  end if;
  -- Asked after the lock: an entry that committed before it is seen.
  return case when is_listed(workspace, account, person, known) then 'identity_suppressed' end;
end $$;

-- As before (0026), and for everybody who is tied to the entry: the people who have the name at this moment, by their number
-- and under all names they have now.
create or replace function end_suppressed() returns trigger language plpgsql as $$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  tied as materialized (
    select p.id, p.workspace_id, p.platform, p.number
    from given s
    cross join lateral (
      select n.person_id from person_names n
      where n.workspace_id = s.workspace_id and n.kind = s.kind and n.value = s.value and n.until is null) n
    join people p on p.id = n.person_id
    union
    select p.id, p.workspace_id, p.platform, p.number
    from given s
    cross join lateral (select distinct a.platform from accounts a where a.workspace_id = s.workspace_id) a
    join people p on p.workspace_id = s.workspace_id and p.platform = a.platform and p.number = s.number),
  named as materialized (
    select workspace_id, kind || ':' || value as contact from given
    union
    select t.workspace_id, n.kind || ':' || n.value from tied t
    join person_names n on n.person_id = t.id and n.until is null
    union
    select workspace_id, 'platform_id:' || number from tied
    union
    select workspace_id, kind || ':' || overlay(value placing '0' from length_of_code + 1 for 0)
    from given cross join generate_series(1, 3) as length_of_code
    where kind = 'phone' and phone_digits(overlay(value placing '0' from length_of_code + 1 for 0)) = value),
  found as materialized (
    select r.id from named s join campaign_recipients r on r.workspace_id = s.workspace_id
      and r.contact = s.contact and r.ended_at is null and r.status in ('queued', 'waiting')
    union all
    select r.id from given s join accounts a on a.workspace_id = s.workspace_id
      join campaign_recipients r on r.account_id = a.id and r.chat_id = s.number
    union all
    select r.id from tied t join accounts a on a.workspace_id = t.workspace_id and a.platform = t.platform
      join campaign_recipients r on r.account_id = a.id and r.chat_id = t.number
    union all
    select r.id from given s join campaign_recipients r on r.workspace_id = s.workspace_id
      and r.found_id = s.number and r.ended_at is null
    union all
    select r.id from tied t join campaign_recipients r on r.workspace_id = t.workspace_id
      and r.found_id = t.number and r.ended_at is null
    union all
    select r.id from given s join campaign_recipients r on s.kind = 'username' and r.workspace_id = s.workspace_id
      and r.found_username = s.value and r.ended_at is null
    union all
    select r.id from given s join campaign_recipients r on s.kind = 'phone' and r.workspace_id = s.workspace_id
      and r.found_phone = s.value and r.ended_at is null
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

-- A reply to any account ends what waits for the person in every account.
create index campaign_recipients_open_chat on campaign_recipients (workspace_id, chat_id)
  where chat_id is not null and status in ('submitting', 'waiting', 'ambiguous');
