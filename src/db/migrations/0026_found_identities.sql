-- Suppressed means suppressed, whatever a person is known by.

-- As `listedDigits` in platform/identifier.ts: the digits from the country's code on, without the zero that some write
-- behind it. In Italy (39), the Ivory Coast (225) and the Congo (242) the zero belongs to the number.
create or replace function phone_digits(phone text) returns text language sql immutable strict parallel safe
  return regexp_replace(
    regexp_replace(regexp_replace(regexp_replace(phone, '\(\s*0\s*\)', '', 'g'), '\D', '', 'g'), '^00', ''),
    '^(?!225|242)([17]|2[07]|3[0-46]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|(?:2[1-689]|3[578]|42|5[09]|6[789]|8[035789]|9[679])\d)0',
    '\1');
reindex index contacts_phone;
delete from suppressions s where s.kind = 'phone' and phone_digits(s.value) <> s.value and exists (
  select from suppressions t where t.workspace_id = s.workspace_id and t.kind = 'phone'
    and t.value = phone_digits(s.value));
update suppressions set value = phone_digits(value) where kind = 'phone' and phone_digits(value) <> value;

alter table campaign_recipients
  -- Whom a look-up found, in the forms that the suppression list has. Kept until the recipient is final, shown nowhere.
  add column found_id bigint,
  add column found_username text,
  add column found_phone text;
create index campaign_recipients_found_id on campaign_recipients (workspace_id, found_id)
  where found_id is not null and ended_at is null;
create index campaign_recipients_found_username on campaign_recipients (workspace_id, found_username)
  where found_username is not null and ended_at is null;
create index campaign_recipients_found_phone on campaign_recipients (workspace_id, found_phone)
  where found_phone is not null and ended_at is null;

-- The same question as `forbidden_by_suppression`, with more names of the person: `known` has them as `kind:value`, in the
-- forms that the list has.
create function recipient_forbidden(workspace uuid, account text, person bigint, known text[]) returns text
language plpgsql volatile as $$
begin
  if not pg_try_advisory_xact_lock_shared(suppressions_lock(workspace)) then
    return 'busy';
  end if;
  if exists (
      select from (
        select split_part(name, ':', 1) as kind, split_part(name, ':', 2) as value from unnest(known) as name
        union all
        select 'platform_id', person::text
        union all
        select t.kind, t.value from contacts c
        cross join lateral (values ('username', lower(c.username)), ('phone', phone_digits(c.phone))) as t (kind, value)
        where c.account_id = account and c.provider_id = person) named
      join suppressions s on s.workspace_id = workspace and s.kind = named.kind and s.value = named.value) then
    return 'identity_suppressed';
  end if;
  return null;
end $$;

-- As before (0024), and by whom a look-up found. A phone number may have been given with a zero behind the country's code.
create or replace function end_suppressed() returns trigger language plpgsql as $$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  named as materialized (
    select workspace_id, kind || ':' || value as contact from given
    union all
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
    select r.id from given s join campaign_recipients r on r.workspace_id = s.workspace_id
      and r.found_id = s.number and r.ended_at is null
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

-- Whom a look-up found is forgotten with the end of the recipient.
create function forget_found() returns trigger language plpgsql as $$
begin
  new.found_id := null;
  new.found_username := null;
  new.found_phone := null;
  return new;
end $$;
create trigger recipients_forget_found before update on campaign_recipients for each row
  when (new.ended_at is not null and (new.found_id is not null or new.found_username is not null or new.found_phone is not null))
  execute function forget_found();
