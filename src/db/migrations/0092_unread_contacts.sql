-- Until every contact of before was read, the suppression list asks about the contacts of all accounts of the workspace on the platform,
-- as it does about learned names from then on. Before, only the acting account's counted: a phone number that another account sees
-- stopped nobody else.

-- As before (0083), but for that.
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
          -- Until every contact of before was read, some people have no row. The list is the workspace's, so every account's contact counts.
          select name.kind, name.value, null
          from accounts a
          cross join lateral (
            select * from contacts c where c.account_id = a.id and c.provider_id = who.number limit 1) c
          cross join lateral (
            values ('username', lower(c.username)), ('phone', phone_digits(c.phone))) as name (kind, value)
          where a.workspace_id = workspace and a.platform = on_platform
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

-- As before (0057), and in the chats of every account of the workspace on the platform.
create or replace function unread_contacts_named(workspace uuid, name_kind text, name_value text)
returns table (account_id text, number bigint) language sql stable as $$
  select a.id, unread.number from (
    select c.account_id, c.provider_id as number from contacts c
    where name_kind = 'username' and c.workspace_id = workspace and lower(c.username) = name_value
      and exists (select from people_backfill where done_at is null)
    union all
    select c.account_id, c.provider_id from contacts c
    where name_kind = 'phone' and c.workspace_id = workspace and phone_digits(c.phone) = name_value
      and exists (select from people_backfill where done_at is null)) unread
  join accounts seen_by on seen_by.id = unread.account_id
  join accounts a on a.workspace_id = workspace and a.platform = seen_by.platform;
$$;
