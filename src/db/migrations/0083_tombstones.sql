-- What is learned of people, and whom the suppression list stops, once people can be erased.

-- As before (0056), but no names of people who were erased.
create or replace function learn_names(workspace uuid, account text, numbers bigint[], usernames text[], phones text[],
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
      where p.workspace_id = workspace and p.platform = on_platform and p.number = g.number and p.erased_at is null limit 1) p
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

-- As before (0063), and where only a name is known, a tombstone says whose it was. The caller adds it to `known` as `tombstone:` and
-- the hash in hexadecimal digits: the database does not have the key.
create or replace function is_listed(workspace uuid, account text, number bigint, known text[]) returns boolean
language plpgsql stable as $$
declare
  on_platform text := (select a.platform from accounts a where a.id = account);
begin
  return exists (
    select from (
      select asked.kind, asked.value, case when bool_or(asked.until is null) then null else max(asked.until) end as until
      from (
        select split_part(name, ':', 1) as kind, split_part(name, ':', 2) as value, null::timestamptz as until
        from unnest(known) as name
        union all
        select t.kind, t.value, t.until
        from (
          select is_listed.number as number, (
            select p.id from people p
            where p.workspace_id = workspace and p.platform = on_platform and p.number = is_listed.number) as id
          where is_listed.number is not null
          union all
          -- Nobody was looked up yet: asks about the people who have one of the names now, as far as any account knows.
          select p.number, p.id from unnest(known) as name
          cross join lateral (
            select * from person_names n where n.workspace_id = workspace and n.kind = split_part(name, ':', 1)
              and n.value = split_part(name, ':', 2) offset 0) n
          cross join lateral (select * from people p where p.id = n.person_id limit 1) p
          where is_listed.number is null and n.platform = on_platform and n.until is null
          union all
          select given.number, (
            select p.id from people p
            where p.workspace_id = workspace and p.platform = on_platform and p.number = given.number)
          from (
            select split_part(name, ':', 2)::bigint as number from unnest(known) as name
            where is_listed.number is null and name ~ '^platform_id:[0-9]{1,18}$') given
          union all
          -- A name of an erased person leads to their number, unless it leads to somebody else by now.
          select t.number, null from unnest(known) as name
          cross join lateral (
            select * from tombstones t
            where t.workspace_id = workspace and t.hash = decode(split_part(name, ':', 2), 'hex') offset 0) t
          where is_listed.number is null and name ~ '^tombstone:[0-9a-f]{64}$' and t.platform = on_platform and not exists (
            select from unnest(known) as now_known
            cross join lateral (
              select * from person_names o where o.workspace_id = workspace and o.kind = split_part(now_known, ':', 1)
                and o.value = split_part(now_known, ':', 2) offset 0) o
            cross join lateral (select * from people p where p.id = o.person_id limit 1) p
            where o.platform = on_platform and o.until is null and p.number <> t.number)) who
        cross join lateral (
          select 'platform_id' as kind, who.number::text as value, null::timestamptz as until
          union all
          (select n.kind, n.value, n.until from person_names n where n.person_id = who.id offset 0)
          union all
          -- Until every contact of before was read, some people have no row.
          select name.kind, name.value, null
          from contacts c
          cross join lateral (
            values ('username', lower(c.username)), ('phone', phone_digits(c.phone))) as name (kind, value)
          where c.account_id = account and c.provider_id = who.number
            and exists (select from people_backfill where done_at is null)) t) asked
      -- A recipient by chat has an account and a chat in the place of a name.
      where asked.kind in ('username', 'phone', 'platform_id') and asked.value is not null
      group by 1, 2) named
    cross join lateral (
      select from suppressions s
      where s.workspace_id = workspace and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at)
      limit 1) s);
end $$;
