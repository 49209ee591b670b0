-- Webhooks: the endpoints of a workspace, what each of them is to be told, and the attempts that failed.

create table webhooks (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  url text not null check (char_length(url) <= 2048),
  -- The types of events it gets; {*} for all.
  events text[] not null check (cardinality(events) > 0),
  -- Sealed. After a rotation the previous one signs as well, until then.
  secret bytea not null,
  previous_secret bytea,
  previous_until timestamptz,
  active boolean not null default true,
  created_at timestamptz not null default domain_now(),
  -- The last sequence of the workspace that was planned for it.
  position bigint not null,
  consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  -- The circuit breaker is open while this is set: one attempt at a time, none before it.
  probe_at timestamptz,
  probe_gap_seconds integer,
  -- When it became inactive because of its failures.
  disabled_at timestamptz,
  -- The one process that delivers to it, in real time.
  lease_owner uuid,
  lease_until timestamptz,
  -- Deleted for everybody to see. Its rows are removed in lots, the row itself last.
  deleted_at timestamptz,
  unique (workspace_id, id),
  check ((probe_at is null) = (probe_gap_seconds is null)),
  check ((previous_secret is null) = (previous_until is null)),
  check (deleted_at is null or not active)
);
create index webhooks_active on webhooks (workspace_id, position) where active;
create index webhooks_deleted on webhooks (id) where deleted_at is not null;

create table webhook_deliveries (
  id uuid primary key,
  workspace_id uuid not null,
  webhook_id uuid not null,
  -- The event is (workspace_id, sequence). A test has no sequence, and carries its body itself.
  sequence bigint,
  event_id text not null,
  type text not null,
  body text,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- All of them, and those since it was last queued: the schedule goes by these.
  attempts integer not null default 0,
  series_attempts integer not null default 0,
  due_at timestamptz,
  -- When the event got its place, so that both are forgotten together.
  created_at timestamptz not null,
  delivered_at timestamptz,
  last_at timestamptz,
  last_status integer,
  last_ms integer,
  last_error text,
  foreign key (workspace_id, webhook_id) references webhooks (workspace_id, id),
  unique (webhook_id, sequence),
  check ((sequence is null) = (body is not null)),
  check ((state = 'pending') = (due_at is not null)),
  check ((state = 'delivered') = (delivered_at is not null))
);
-- What an endpoint has to be told next.
create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at, sequence) where state = 'pending';
-- Tests do not wait for an inactive endpoint, so they are looked for apart.
create index webhook_deliveries_tests on webhook_deliveries (webhook_id) where state = 'pending' and sequence is null;
-- The lists, newest first, and what is old enough to be forgotten.
create index webhook_deliveries_listed
  on webhook_deliveries (webhook_id, state, created_at, coalesce(sequence, 0), id);

-- The failed ones only: a success is on the delivery.
create table webhook_attempts (
  delivery_id uuid not null references webhook_deliveries on delete cascade,
  n integer not null,
  workspace_id uuid not null,
  at timestamptz not null,
  status integer,
  ms integer not null,
  error text,
  response text,
  primary key (delivery_id, n)
);
