-- For the operators' pages: what each worker reports with its heartbeat, and the audit log by action and by actor.
alter table workers
  add column version text not null default '',
  -- The loops whose last step failed.
  add column failing text[] not null default '{}',
  -- Free on the disk of its data directory; null if unknown.
  add column disk_free bigint;

create index audit_action on audit (action, seq);
create index audit_actor on audit (actor, seq);
