-- Bounds: requests that wait for events, and callers of the limiter that may be forgotten.

-- When the last hit leaves its window: from then on the row says nothing. Null in rows of an older release.
alter table request_log add column idle_at timestamptz;

-- Requests that wait for events at this moment, on any process. A process that dies leaves its rows until they expire. Worth
-- nothing after a crash, so it is not logged, and it refers to no other table: a reference would lock and log a row there.
create unlogged table event_waits (
  id uuid primary key,
  workspace_id uuid not null,
  -- The key or the session that waits.
  caller text not null,
  -- Real time: the request is answered before.
  expires_at timestamptz not null
);
create index event_waits_workspace on event_waits (workspace_id, expires_at);
