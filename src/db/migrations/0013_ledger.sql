-- What the ledger needs against databases that go back in time, commits that stall, and callers that wait for an attempt.

-- Real time: leases, expiry and liveness. A simulation moves it by its one row; otherwise it is the clock's.
create table simulated_time (
  singleton boolean primary key default true check (singleton),
  at timestamptz not null
);
create function real_now() returns timestamptz language sql volatile as
  'select coalesce((select at from simulated_time), clock_timestamp())';

alter table operations
  -- How often it was queued. Whoever waits, waits for this attempt and not for an earlier one.
  add column queued_no integer not null default 1,
  -- When the boundary was last crossed, in domain time.
  add column crossed_at timestamptz;

alter table account_hosts
  -- Raised by every crossing and every batch of updates. A value below one that was seen committed means that the
  -- database has lost commits, for example by a failover to a standby that lagged.
  add column writes bigint not null default 0;

alter table workers
  -- It found the database restored and has not yet put back what its journals know. Until then nobody crosses.
  add column owes boolean not null default false,
  -- It can write its journal, so it may drive accounts.
  add column drives boolean not null default true;
create index workers_owing on workers (id) where owes;

-- The oldest of each chat comes first, so that a chat with many waiting hides no other.
drop index operations_queued;
create index operations_queued on operations (account_id, chat_id, created_at, id) where state = 'queued';

-- The platform as the last witness: a random id on a stored message was accepted. Not unique: other clients choose theirs.
create index messages_random on messages (account_id, random_id) where random_id is not null;
