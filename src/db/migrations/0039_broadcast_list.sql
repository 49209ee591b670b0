-- The list of broadcasts, which would otherwise read every campaign of the workspace to find them.

create index campaigns_broadcasts on campaigns (workspace_id, created_at desc, id desc) where kind = 'broadcast';
