-- Alerts about the whole instance are posted each time that they begin, up to three times an hour.
alter table alerts
  -- When posts said in the last hour that it began. Empty in rows of an older release.
  add column begins timestamptz[] not null default '{}';
