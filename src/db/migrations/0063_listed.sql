-- As before (0056), with fewer reads: the people are found first, and the list is asked about each of their names once.
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
            where is_listed.number is null and name ~ '^platform_id:[0-9]{1,18}$') given) who
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
