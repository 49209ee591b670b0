-- What the boundary asks of the suppression list, in one order with whoever adds to it.

create function suppressions_lock(workspace uuid) returns bigint language sql immutable
  return hashtextextended('suppressions ' || workspace::text, 0);

-- Null where the person may be written to. It never waits: somebody who adds to the list holds the lock alone until the
-- commit, and the crossing is asked for again. The list is read by a statement of its own after the lock was taken, so
-- that it shows every entry that was committed before.
create function forbidden_by_suppression(workspace uuid, account text, person bigint) returns text
language plpgsql volatile as $$
declare
  known_username text;
  known_phone text;
begin
  if not pg_try_advisory_xact_lock_shared(suppressions_lock(workspace)) then
    return 'busy';
  end if;
  -- In the one form that the list has: usernames in lower case, phone numbers as digits from the country's code on.
  select lower(username), regexp_replace(regexp_replace(
      regexp_replace(phone, '\(\s*0\s*\)', '', 'g'), '\D', '', 'g'), '^00', '')
    into known_username, known_phone from contacts where account_id = account and provider_id = person;
  if exists (select from suppressions where workspace_id = workspace and (
      (kind = 'platform_id' and value = person::text)
      or (kind = 'username' and value = known_username)
      or (kind = 'phone' and value = known_phone))) then
    return 'identity_suppressed';
  end if;
  return null;
end $$;
