-- Everything that happens exactly once: operations under their idempotency keys, and events in order.

create table operations (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  -- The operation's name in the contract, such as `send_message`.
  kind text not null,
  effect text not null check (effect in ('local', 'platform')),
  idempotency_key text check (char_length(idempotency_key) between 1 and 255),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  state text not null
    check (state in ('queued', 'submitting', 'completed', 'refused', 'released', 'ambiguous')),
  reason text,
  user_id uuid references users,
  key_id uuid references keys,
  account_id text,
  chat_id bigint,
  payload jsonb,
  random_id bigint,
  attempt_no integer not null default 0,
  attempt_token uuid,
  owner uuid,
  lease_until timestamptz,
  expires_at timestamptz,
  -- What a repeat answers: the HTTP status and body as they were first given.
  reply_status integer,
  reply_body json,
  reconciled boolean not null default false,
  closed_as text check (closed_as in ('sent', 'not_sent')),
  created_at timestamptz not null default domain_now(),
  finished_at timestamptz,
  unique (workspace_id, kind, idempotency_key),
  unique (account_id, random_id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id),
  check (state <> 'completed' or reply_status is not null)
);

-- Emitted in the transaction of the change; moved to `events` by one sequencer at a time. Neither refers to the
-- workspace by a key: every emitting transaction would lock the same row.
create table outbox (
  id bigint generated always as identity primary key,
  workspace_id uuid not null,
  type text not null,
  occurred_at timestamptz not null,
  data json not null
);

create table events (
  workspace_id uuid not null,
  sequence bigint not null,
  id text not null,
  type text not null,
  occurred_at timestamptz not null,
  created_at timestamptz not null default domain_now(),
  data json not null,
  primary key (workspace_id, sequence)
);
create index events_age on events (created_at);

create table event_sequences (
  workspace_id uuid primary key,
  sequence bigint not null
);
