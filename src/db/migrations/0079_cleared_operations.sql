-- Ended operations whose texts were cleared: the row, its hashes, ids and times stay.

alter table operations add column cleared_at timestamptz;

-- What retention walks, oldest first.
create index operations_uncleared on operations (workspace_id, finished_at)
  where cleared_at is null and state in ('completed', 'refused', 'released');

-- As before (0017), and a row that runs again may be cleared again.
create or replace function guard_operations() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if old.forgettable and old.state in ('completed', 'refused', 'released')
      and old.finished_at < domain_now() - interval '30 days' then
      return old;
    end if;
    raise exception 'operation % must not be deleted', old.id using errcode = 'restrict_violation';
  end if;
  if (new.id, new.workspace_id, new.kind, new.effect, new.fingerprint, new.forgettable)
      is distinct from (old.id, old.workspace_id, old.kind, old.effect, old.fingerprint, old.forgettable)
    or new.idempotency_key is distinct from old.idempotency_key
    or (new.campaign_id, new.recipient_id, new.step_no)
      is distinct from (old.campaign_id, old.recipient_id, old.step_no)
    or new.random_id is distinct from old.random_id then
    raise exception 'operation % must keep its identity', old.id using errcode = 'restrict_violation';
  end if;
  if new.state = old.state then
    return new;
  end if;
  if (old.state, new.state) not in (
      ('queued', 'submitting'), ('queued', 'released'), ('queued', 'refused'),
      ('submitting', 'completed'), ('submitting', 'refused'), ('submitting', 'released'), ('submitting', 'ambiguous'),
      ('ambiguous', 'completed'), ('ambiguous', 'released'),
      ('released', 'queued'), ('released', 'submitting')) then
    raise exception 'operation % must not go from % to %', old.id, old.state, new.state
      using errcode = 'restrict_violation';
  end if;
  if old.state in ('submitting', 'ambiguous') and new.state in ('released', 'refused')
    and new.reason is distinct from 'platform_refused' and new.reason is distinct from 'never_written' then
    raise exception 'operation % crossed the boundary: only proof leads back', old.id using errcode = 'restrict_violation';
  end if;
  -- What it stores from here on was not cleared.
  new.cleared_at := null;
  return new;
end $$;
