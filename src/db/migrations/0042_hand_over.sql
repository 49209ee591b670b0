-- Accounts that change hands: callers' operations wait for the next worker, or are refused at once where none may take over soon.
alter table account_hosts
  -- When a worker gave up the account while it was live, or another claimed it. Null once a session has caught up again.
  add column handed_over_at timestamptz,
  -- How long an expired lease rests before another worker claims it. The worker that holds the lease writes its platform's.
  add column takeover_seconds int not null default 0;
