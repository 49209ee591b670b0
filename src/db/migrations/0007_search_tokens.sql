-- What messages are found by has another form now (lib/tokens-message.ts). The worker renews what was stored before,
-- the newest of each account first; until then those messages are not found, and search says that it is not complete.

alter table messages add column tokens_format smallint not null default 1;
alter table messages alter column tokens_format set default 2;
create index messages_unrenewed on messages (account_id, sent_at desc) where tokens_format < 2 and deleted_at is null;
