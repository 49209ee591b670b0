-- What messages are found by. The application makes the lexemes (lib/tokens-message.ts): each begins with its account
-- and season, so the index keeps these apart, and no other tenant's rows are read for a search.

alter table messages add column tokens tsvector not null default '';
create index messages_tokens on messages using gin (tokens) with (gin_pending_list_limit = 256);
create index messages_recent on messages (account_id, sent_at desc, id desc) where deleted_at is null;

-- The words of a chat's name, where no contact has the same: groups, channels, bots.
create extension if not exists btree_gin;
alter table chats add column name_tokens tsvector;
create index chats_words on chats using gin (account_id, name_tokens) where name_tokens is not null;
