-- Accounts at the dashboard: an account's proxy, when its session was last heard, and logins that a worker runs for a browser.

alter table accounts
  -- The proxy as it is shown, without credentials: socks5://host:port. The whole URL is sealed with PARLEY_SECRET.
  add column proxy text,
  add column proxy_sealed bytea,
  add check ((proxy is null) = (proxy_sealed is null));

-- The last sign of life of a session that is over: `observed_at` is null until the next one has caught up.
alter table account_hosts add column heard_at timestamptz;

-- What a worker does about an account's login for a user at the dashboard. Unlogged, because nothing in it is worth keeping:
-- the table is part of no backup, and a crash of the server ends the logins. Without foreign keys, because a restore truncates
-- the tables that they would refer to.
create unlogged table account_logins (
  account_id text primary key,
  workspace_id uuid not null,
  actor text not null,
  way text not null check (way in ('qr', 'phone', 'logout')),
  state text not null check (state in ('qr', 'code', 'password', 'ending', 'done', 'failed')),
  -- Another begin has another number: a worker whose login was replaced changes nothing more.
  attempt uuid not null,
  -- When each of the logins of the last hour began: the platform counts them against the number.
  begins timestamptz[] not null default '{}',
  begun_at timestamptz not null default domain_now(),
  -- The worker that runs it renews this. Once it has passed, no worker does.
  alive_until timestamptz not null,
  worker_id uuid,
  -- The QR code, the way of the code or the hint, sealed. Null: the worker has nothing to show yet.
  shown bytea,
  -- The phone number at first, then what the user typed: sealed, and deleted as the worker takes it.
  typed bytea,
  -- Why it failed: a code of the API, its sentence, and how long to wait.
  failure jsonb,
  check ((state = 'failed') = (failure is not null)),
  check (state not in ('done', 'failed') or (shown is null and typed is null))
);
create index account_logins_open on account_logins (alive_until) where state not in ('done', 'failed');
