-- Logins by phone number: the platform sends a code for each, to the owner of the number. A row is kept for an hour.
create table login_numbers (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id) on delete cascade,
  -- Signed with a key of the instance: the table alone says nothing about a number.
  number_hash bytea not null check (octet_length(number_hash) = 32),
  begun_at timestamptz not null default domain_now()
);
create index login_numbers_number on login_numbers (number_hash, begun_at);
create index login_numbers_begun on login_numbers (begun_at);
