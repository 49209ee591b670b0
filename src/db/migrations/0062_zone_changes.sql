-- A new time zone of a workspace holds from the end of the day that has begun in the old one, so that a change opens no second day.

alter table workspaces
  add column timezone_before text,
  add column timezone_from timestamptz,
  -- The day that had begun when the zone was changed. Days never go back behind it, however far the zones are apart.
  add column day_floor date,
  add check ((timezone_before is null) = (timezone_from is null) and (timezone_from is null) = (day_floor is null));

-- The day of a workspace at an instant: the one reader in SQL. `dayAt` in lib/zones.ts is the same rule.
create function workspace_day(timezone text, timezone_before text, timezone_from timestamptz, day_floor date, instant timestamptz)
returns date language sql stable parallel safe as $$
  select greatest((instant at time zone case when instant < timezone_from then timezone_before else timezone end)::date, day_floor)
$$;
