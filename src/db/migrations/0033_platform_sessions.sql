-- What platforms whose accounts log in keep for an account (platform/port.ts, AccountStore).

-- There is a row from a login to the logout.
create table platform_sessions (
  account_id text primary key references accounts (id),
  platform text not null,
  -- Who is logged in. A user of a platform is one account of the instance.
  platform_user_id bigint not null,
  -- It gives full control of the account: sealed with PARLEY_SECRET, and bound to this row.
  sealed bytea not null,
  created_at timestamptz not null default domain_now(),
  unique (platform, platform_user_id)
);

-- Whom an account can write to. The text is the adapter's own.
create table platform_peers (
  account_id text not null references accounts (id),
  number bigint not null,
  text text not null,
  primary key (account_id, number)
);
