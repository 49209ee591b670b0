-- People whom a workspace has erased: the job that removes what is stored of them, and what keeps it from coming back.

-- Whose names are not learned: they were erased, and have not written since.
alter table people add column erased_at timestamptz;

create table erasures (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  person_id uuid not null references people (id),
  platform text not null,
  -- Their number on the platform, which stays.
  number bigint not null,
  actor text not null,
  -- Neither an entry of the suppression list nor a tombstone was to refuse them.
  contact_allowed boolean not null,
  -- A keyed hash of each of their names then.
  tombstones bytea[] not null,
  at timestamptz not null default domain_now(),
  -- What the job is doing, and how far it has come.
  step text not null default 'begin',
  after text,
  cleared int not null default 0,
  total int not null default 0,
  done_at timestamptz
);
create index erasures_open on erasures (at) where done_at is null;
create index erasures_person on erasures (person_id, at);

-- By the hash of a name: the number of an erased person who had it.
create table tombstones (
  workspace_id uuid not null references workspaces (id),
  hash bytea not null check (octet_length(hash) = 32),
  platform text not null,
  number bigint not null,
  primary key (workspace_id, hash, platform, number)
);

-- Private chats of erased people, in every account of the workspace. Nothing of them is stored before `from_id`, the message with
-- which the person wrote again; null: they have not.
create table erased_chats (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  erased_at timestamptz not null,
  -- The newest message that was stored then.
  last_id bigint not null default 0,
  from_id bigint,
  primary key (account_id, chat_id)
);

-- An account that is added later must not bring an erased person back.
create function erase_in_new_account() returns trigger language plpgsql as $$
begin
  insert into erased_chats (account_id, chat_id, workspace_id, erased_at)
  select distinct on (e.number) new.id, e.number, new.workspace_id, e.at from erasures e
  where e.workspace_id = new.workspace_id and e.platform = new.platform
  order by e.number, e.at desc;
  return null;
end $$;
create trigger accounts_erased after insert on accounts for each row execute function erase_in_new_account();

-- As before (0021), and the payload may be erased.
create or replace function guard_approvals() returns trigger language plpgsql as $$
begin
  if (new.id, new.workspace_id, new.user_id, new.key_id, new.operation, new.account_id, new.chat_id, new.fingerprint,
      new.created_at)
      is distinct from (old.id, old.workspace_id, old.user_id, old.key_id, old.operation, old.account_id, old.chat_id,
      old.fingerprint, old.created_at)
    -- One that is not waiting for its use any more may be erased.
    or (new.payload::text <> old.payload::text and new.payload::text <> '{"erased": true}')
    or new.platform_user_id is distinct from old.platform_user_id then
    raise exception 'approval % must stay what was asked for', old.id using errcode = 'restrict_violation';
  end if;
  if old.state <> 'waiting' and (new.issuer, new.subject, new.idp_user_uuid, new.token_hash, new.token_expires_at,
      new.generation, new.decided_at)
      is distinct from (old.issuer, old.subject, old.idp_user_uuid, old.token_hash, old.token_expires_at,
      old.generation, old.decided_at) then
    raise exception 'approval % must stay as it was decided', old.id using errcode = 'restrict_violation';
  end if;
  if new.state <> old.state and (old.state, new.state) not in (
      ('waiting', 'approved'), ('waiting', 'denied'), ('approved', 'used')) then
    raise exception 'approval % must not go from % to %', old.id, old.state, new.state
      using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
