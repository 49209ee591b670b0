-- The secret can be rotated: keys that never change are stored, sealed by it, and the database says which secret seals.

create table stored_keys (
  purpose text primary key,
  sealed bytea not null
);

-- The first process that starts fills it, because a migration knows no secret. A transaction that seals reads it under a share
-- lock, so that none seals with the old secret once a rotation has begun.
create table secret_use (
  one boolean primary key default true check (one),
  -- Identifies the secret that seals and signs, and during a rotation the one before it.
  secret_id text not null,
  old_id text,
  -- How many rotations there have been.
  turn int not null default 0,
  -- Whether addresses of webhooks are stored sealed only: processes of release 0.3 read them in plain.
  addresses_sealed boolean not null default false,
  check (old_id <> secret_id)
);
