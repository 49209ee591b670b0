-- What agents want to write, and the person who sees it first: the request, the decision, and the token that runs it once.

create table approvals (
  id uuid primary key,
  workspace_id uuid not null,
  -- The user of the key that asked: nobody else sees the request or decides on it.
  user_id uuid not null,
  key_id uuid not null references keys,
  -- What the client calls itself. Nothing depends on it.
  client_name text check (char_length(client_name) between 1 and 200),
  -- The route that runs it, and what it is run on.
  operation text not null,
  account_id text not null,
  -- Who the account was on its platform when this was asked for.
  platform_user_id bigint,
  chat_id bigint not null,
  payload json not null,
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  -- What the field was when the person decided; null for a message.
  field_before text[],
  state text not null default 'waiting' check (state in ('waiting', 'approved', 'denied', 'used')),
  created_at timestamptz not null default domain_now(),
  -- A request that nobody has decided on by then is over.
  expires_at timestamptz not null,
  decided_at timestamptz,
  -- The identity by which the user had signed in when they approved.
  issuer text,
  subject text,
  idp_user_uuid uuid,
  -- The token itself is shown once and kept nowhere.
  token_hash bytea unique check (octet_length(token_hash) = 32),
  token_expires_at timestamptz,
  -- The database's own, as of the approval. After a restore it is another one, and the token is worth nothing.
  generation uuid,
  used_at timestamptz,
  foreign key (workspace_id, user_id) references memberships,
  foreign key (workspace_id, account_id) references accounts (workspace_id, id),
  check ((state = 'waiting') = (decided_at is null)),
  check (num_nulls(issuer, subject, idp_user_uuid, token_hash, token_expires_at, generation)
    = case when state in ('approved', 'used') then 0 else 6 end),
  check ((state = 'used') = (used_at is not null))
);
create index approvals_key on approvals (key_id, fingerprint, created_at desc);
create index approvals_waiting on approvals (key_id, expires_at) where state = 'waiting';
create index approvals_user on approvals (user_id, created_at desc, id desc);
create index approvals_created on approvals (created_at);

-- Decided once, used once, and never for anything else than what the person saw.
create function guard_approvals() returns trigger language plpgsql as $$
begin
  if (new.id, new.workspace_id, new.user_id, new.key_id, new.operation, new.account_id, new.chat_id, new.fingerprint,
      new.payload::text, new.created_at)
      is distinct from (old.id, old.workspace_id, old.user_id, old.key_id, old.operation, old.account_id, old.chat_id,
      old.fingerprint, old.payload::text, old.created_at)
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
create trigger approvals_guard before update on approvals
  for each row execute function guard_approvals();
