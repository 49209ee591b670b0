-- What the guard knew as a list of kinds is a property of each row, so that a new kind of operation needs no new guard.

alter table operations
  -- The row, and with it its key, may be deleted 30 days after its end. Said by the kind of operation when it is queued.
  add column forgettable boolean not null default false;
alter table operations disable trigger operations_guard;
update operations set forgettable = true where kind in ('start_chat', 'set_read_state');
alter table operations enable trigger operations_guard;

drop index operations_forgettable;
create index operations_forgettable on operations (finished_at)
  where forgettable and state in ('completed', 'refused', 'released');

-- The field's words: what is compared to tell a restored database, and the id that callers know a row by.
alter table instance rename column beat to restore_counter;
alter table instance rename column beat_at to restore_counter_at;
alter table operations rename column told_as to public_id;

-- No other way between states, whoever writes, and no way back over the boundary without proof.
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
  return new;
end $$;
