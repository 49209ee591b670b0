-- What messages are found by. The application makes the lexemes, each beginning with its account, so the index keeps
-- the words of every account apart; chats, senders and stretches of time are lexemes too.

alter table messages add column tokens tsvector not null default '';
create index messages_tokens on messages using gin (tokens) with (fastupdate = off);
create index messages_recent on messages (account_id, sent_at desc, chat_id, id);
