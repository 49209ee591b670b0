-- A person of a pool campaign may answer another account of the pool than the one that wrote to them.

alter table campaign_recipients
  -- The account that the reply came to. Null in rows from before this column: the recipient's own.
  add column reply_account_id text;
