-- Whether a person has ever written in a chat, found without reading the account's own messages there.
create index messages_received on messages (account_id, chat_id) where not is_sender;
