-- Erases login codes in events (0052). Events outlive a chat, so those of all accounts are looked at, in one pass. Reads go on meanwhile.

update events e set data = '{"erased": true}' from accounts a
where a.platform = 'telegram' and a.workspace_id = e.workspace_id
  and e.data ->> 'chat_id' = 'platform:chat:777000' and e.data ->> 'account_id' = a.id;
