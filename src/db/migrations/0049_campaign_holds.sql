-- An account whose sends keep ending with an error that its platform's adapter does not list: campaigns wait until a person acts.

alter table account_hosts
  -- The error that the latest answers to sends had in common, and how many there were in a row; null: the latest had another end.
  add column unlisted_error text check (unlisted_error ~ '^[A-Za-z0-9_]{1,64}$'),
  add column unlisted_sends integer not null default 0,
  -- Since when its campaign messages hold, and the error that the sends before it ended with; null: they do not hold.
  add column campaigns_held_at timestamptz,
  add column campaigns_held_by text check (campaigns_held_by ~ '^[A-Za-z0-9_]{1,64}$'),
  add check ((campaigns_held_at is null) = (campaigns_held_by is null));
