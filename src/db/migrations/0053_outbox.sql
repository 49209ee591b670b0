-- What this release changes in the outbox: the trace of an event, and login codes (0052). Before 0054, because an event that is erased
-- here stays erased when it gets its number.

-- The `traceparent` of the request that caused the event; null if there is none.
alter table outbox add column traceparent text;

update outbox o set data = '{"erased": true}' from accounts a
where a.platform = 'telegram' and a.workspace_id = o.workspace_id
  and o.data ->> 'chat_id' = 'platform:chat:777000' and o.data ->> 'account_id' = a.id;
