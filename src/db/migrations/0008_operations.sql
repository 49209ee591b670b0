-- What the ledger needs to reach the platform: files, proofs, what an account has done, and a guard over its rows.

alter table operations
  -- The platform's or our own word for `reason`, such as `blocked_by_person`.
  add column detail text,
  add column file_id uuid,
  -- The platform told of this message under our random id, before or after its answer was lost.
  add column proof_message_id bigint,
  add column proof_at timestamptz,
  -- A message that reads the same: for a person to look at, never decided.
  add column hint_message_id bigint,
  -- When it was last looked for in the platform's history.
  add column looked_for_at timestamptz,
  add column closed_at timestamptz,
  -- The id that callers were told before the database went back in time and a repeat made this row for the same key.
  add column told_as uuid;

create index operations_queued on operations (account_id, created_at, id) where state = 'queued';
create index operations_submitting on operations (lease_until) where state = 'submitting' and effect = 'platform';
create index operations_ambiguous on operations (account_id, created_at) where state = 'ambiguous';
create index operations_attempt on operations (attempt_token) where state in ('submitting', 'ambiguous');
create index operations_file on operations (file_id) where file_id is not null;
create index operations_forgettable on operations (finished_at)
  where kind in ('start_chat', 'set_read_state') and state in ('completed', 'refused', 'released');

-- An attachment on its way: stored while it arrives, gone when its operation is final.
create table file_chunks (
  file_id uuid not null,
  n integer not null,
  workspace_id uuid not null,
  bytes bytea not null,
  stored_at timestamptz not null default clock_timestamp(),
  primary key (file_id, n)
);
-- Attachments are mostly compressed already.
alter table file_chunks alter column bytes set storage external;
create index file_chunks_first on file_chunks (stored_at) where n = 0;

-- What an account has done on a day of its workspace. Only `used` limits anything: campaign submissions.
create table account_days (
  account_id text not null,
  day date not null,
  workspace_id uuid not null,
  used integer not null default 0 check (used >= 0),
  sent integer not null default 0,
  -- Messages to people who have never written to this account.
  cold integer not null default 0,
  lookups integer not null default 0,
  primary key (account_id, day),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);

-- What the platform held against an account.
create table account_strikes (
  id bigint generated always as identity primary key,
  account_id text not null,
  workspace_id uuid not null,
  at timestamptz not null default domain_now(),
  kind text not null,
  seconds integer,
  operation_id uuid,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index account_strikes_recent on account_strikes (account_id, at desc);

-- Tells a database that went back in time: its beat is lower than one that was seen before.
create table instance (
  singleton boolean primary key default true check (singleton),
  id uuid not null default gen_random_uuid(),
  beat bigint not null default 0,
  -- Another one after every time that it went back: who was away meanwhile learns of it.
  generation uuid not null default gen_random_uuid(),
  beat_at timestamptz not null default clock_timestamp()
);
insert into instance default values;

-- The law of the ledger, whoever writes: no other way between states, no way back over the boundary without proof.
create function guard_operations() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if old.kind in ('start_chat', 'set_read_state') and old.state in ('completed', 'refused', 'released')
      and old.finished_at < domain_now() - interval '30 days' then
      return old;
    end if;
    raise exception 'operation % must not be deleted', old.id using errcode = 'restrict_violation';
  end if;
  if (new.id, new.workspace_id, new.kind, new.effect, new.fingerprint)
      is distinct from (old.id, old.workspace_id, old.kind, old.effect, old.fingerprint)
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

create trigger operations_guard before update or delete on operations
  for each row execute function guard_operations();
