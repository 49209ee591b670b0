// Made from the route lists by `npm run generated`. What is asked for is keyed by method and path.

export type Account = { id: string; provider: string; type: 'MESSAGING'; name: string; status: string; connected: boolean }

export type AccountCompleteness = { account_id: string; history_complete: boolean; oldest_at: string | null; newest_at: string | null }

export type AccountLoad = { account_id: string; day: string; messages: number; total: number }

export type AccountLogin = { way: 'qr' | 'phone'; state: 'qr' | 'code' | 'password' | 'done' | 'failed'; begun_at: string; expires_at: string; pending: boolean; qr_url: string | null; qr_expires_at: string | null; sent_by: 'app' | 'sms' | 'word' | 'phrase' | 'call' | 'missed_call' | 'email' | 'fragment' | 'other' | null; place: string | null; again: { by: 'app' | 'sms' | 'word' | 'phrase' | 'call' | 'missed_call' | 'email' | 'fragment' | 'other'; at: string } | null; hint: string | null; wrong: boolean; tries_left: number | null; failure: { code: 'invalid_request' | 'invalid_text' | 'invalid_cursor' | 'account_scope_required' | 'idempotency_key_required' | 'idempotency_collision' | 'invalid_username' | 'unsupported_identifier' | 'unsupported_attachment' | 'message_refused' | 'invalid_stage' | 'invalid_column_value' | 'suppressed_recipient' | 'unresolved_personalization' | 'branching_disabled' | 'invalid_key' | 'not_signed_in' | 'sign_in_refused' | 'missing_scope' | 'workspace_disabled' | 'missing_role' | 'origin_refused' | 'not_allowlisted' | 'account_unavailable' | 'chat_unavailable' | 'blocked_by_person' | 'privacy_restricted' | 'cold_stopped' | 'approval_required' | 'approval_used' | 'approval_expired' | 'approval_mismatch' | 'approval_denied' | 'not_found' | 'chat_not_found' | 'column_not_found' | 'username_not_found' | 'campaign_not_found' | 'webhook_not_found' | 'method_not_allowed' | 'request_timeout' | 'conflict' | 'preview_outdated' | 'erasure_in_progress' | 'operation_in_progress' | 'account_not_ready' | 'identity_suppressed' | 'identity_ineligible' | 'campaign_completed' | 'campaign_not_paused' | 'not_a_sequence' | 'invalid_sequence_status' | 'webhook_limit_reached' | 'attachment_too_large' | 'payload_too_large' | 'unsupported_media_type' | 'range_not_satisfiable' | 'headers_too_large' | 'rate_limited' | 'flood_wait' | 'internal' | 'rest_disabled' | 'feature_disabled' | 'schema_unavailable' | 'stream_unavailable' | 'store_unavailable' | 'provider_unavailable' | 'session_unavailable' | 'suppression_unavailable' | 'outcome_ambiguous'; error: string; retry_after: number | null } | null }

export type Analytics = { period: '7d' | '30d' | 'all'; from: string | null; to: string; messages: MessageCounts; campaign_sends: CampaignSends; totals: AnalyticsTotals; campaigns: (CampaignFigures)[] }

export type AnalyticsTotals = { campaigns: number; sent: number; failed: number; replies: number; opt_outs: number; reply_rate: number }

export type Approval = { id: string; state: 'waiting' | 'approved' | 'denied' | 'expired' | 'used'; created_at: string; expires_at: string; decided_at: string | null; token_expires_at: string | null; used_at: string | null; workspace: { id: string; name: string }; key: { id: string; name: string; prefix: string }; client_name: string | null; account: { id: string; name: string; provider: string }; operation: string; tool: string; chat: { id: string; name: string }; payload: unknown; payload_sha256: string; field: string | null; from: (string)[] | null; to: (string)[] | null; operation_id: string | null; outcome: { state: 'queued' | 'submitting' | 'completed' | 'refused' | 'released' | 'ambiguous'; finished_at: string | null; message_id: string | null; code: string | null; error: string | null } | null }

export type Attachment = { index: number; kind: 'photo' | 'voice' | 'video' | 'sticker' | 'file'; file_name: string; media_type: string; size: number; width?: number; height?: number; seconds?: number }

export type AudiencePerson = { account_id: string; chat_id: string; name: string; username: string | null; reason: 'not_ready' | 'no_person' | 'suppressed' | 'nameless' | null; sentence: string | null }

export type BoardStage = { key: string; label: string; color: string | null; terminal: boolean; hidden: boolean; count: number; chats: (InboxChat)[] }

export type Broadcast = { broadcast_id: string; recipients: number; audience_total: number; capped: boolean; status: 'queued' | 'sending' | 'completed'; message_text: string; created_at: string; started_at: string | null; completed_at: string | null; totals: CampaignTotals; people: (CampaignRecipient)[] }

export type BroadcastRequest = { account_id: string; audience_type: 'stage' | 'column'; audience_ref: string; column_value?: string; message_text: string }

export type BroadcastResult = { ok: true; message: string; broadcast_id: string; recipients: number; audience_total: number; capped: boolean }

export type BroadcastRow = { broadcast_id: string; recipients: number; audience_total: number; capped: boolean; status: 'queued' | 'sending' | 'completed'; message_text: string; created_at: string; started_at: string | null; completed_at: string | null; totals: CampaignTotals; created_by: CampaignCreator }

export type Campaign = { id: string; name: string | null; status: 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'; kind: 'scoped' | 'contacts'; message_text: string; branching_enabled: boolean; daily_quota_per_account: number; max_followups: number; scheduled_at: string | null; schedule_timezone: string; created_at: string; started_at: string | null; completed_at: string | null; cancelled_at: string | null; pause_reason: 'requested' | 'late' | null; totals: CampaignTotals }

export type CampaignActions = { create: boolean; cancel: boolean; pause: boolean; resume: boolean }

export type CampaignChange = { campaign: CampaignState; changed: boolean }

export type CampaignCheck = { name: string; ok: boolean; detail: string }

export type CampaignContactRequest = { name?: string; identifier: string; chat_id?: string }

export type CampaignCoverage = { scope: 'internal'; legacy_excluded: true; limitations: (string)[] }

export type CampaignCreator = { user_id: string; name: string }

export type CampaignDetail = { id: string; name: string | null; status: 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'; kind: 'scoped' | 'contacts'; message_text: string; branching_enabled: boolean; daily_quota_per_account: number; max_followups: number; scheduled_at: string | null; schedule_timezone: string; created_at: string; started_at: string | null; completed_at: string | null; cancelled_at: string | null; pause_reason: 'requested' | 'late' | null; totals: CampaignTotals; recipients: (CampaignRecipient)[]; steps: (CampaignStep)[]; operations: (CampaignOperation)[]; reporting: (CampaignReport)[]; can: CampaignActions }

export type CampaignFigures = { id: string; name: string | null; status: string; kind: string; created_at: string; sent: number; failed: number; ambiguous: number; replies: number; opt_outs: number; reply_rate: number }

export type CampaignForecast = { creatable: boolean; warnings: ('steps_truncated' | 'scheduled_at_adjusted' | 'already_in_campaign')[]; excluded: (ExcludedRecipient)[]; texts: (RecipientTexts)[]; timetable: (TimetableRow)[]; load: (AccountLoad)[]; end: string | null; next_cursor: string | null; has_more: boolean }

export type CampaignOperation = { id: string; recipient_id: string; step: number; kind: string; state: 'queued' | 'submitting' | 'completed' | 'refused' | 'released' | 'ambiguous'; account_id: string | null; chat_id: string | null; variant: number | null; created_at: string; crossed_at: string | null; finished_at: string | null; reconciled: boolean; reason: string | null; detail: string | null; message_id: string | null }

export type CampaignPage = { campaigns: (Campaign)[]; coverage: CampaignCoverage; next_cursor: string | null; has_more: boolean }

export type CampaignProgress = { id: string; name: string | null; status: 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'; kind: 'scoped' | 'contacts'; pause_reason: 'requested' | 'late' | null; created_at: string; scheduled_at: string | null; started_at: string | null; completed_at: string | null; cancelled_at: string | null; totals: CampaignTotals; opt_outs: number; created_by: CampaignCreator; next: NextMessage }

export type CampaignRecipient = { id: string; account_id: string | null; chat_id: string | null; identifier: string | null; name: string | null; status: 'queued' | 'submitting' | 'waiting' | 'completed' | 'replied' | 'failed' | 'ambiguous' | 'cancelled' | 'suppressed'; reason: string | null; step: number; next_action_at: string | null; blocked_by: 'scheduled' | 'waiting' | 'quota' | 'pacing' | 'flood_wait' | 'account_not_ready' | 'ambiguous' | 'gate' | 'window' | 'paused' | null; timeline: (CampaignTimelineEntry)[] }

export type CampaignRecipientRequest = { account_id: string; chat_id: string }

export type CampaignRepliedEvent = { id: string; type: 'campaign.replied'; api_version: string; workspace_id: string; sequence: number; occurred_at: string; created_at: string; data: ReplyEventData | ErasedEventData }

export type CampaignReport = { step: number; branch: 'no_reply' | 'seen' | 'unseen' | null; variant: number | null; sent: number; failed: number; ambiguous: number; replies: number; opted_out: number }

export type CampaignRequest = { name?: string; message_text: string; recipients?: (CampaignRecipientRequest)[]; contacts?: (CampaignContactRequest)[]; account_id?: string; account_pool?: (string)[]; steps?: (CampaignStepRequest)[]; branching_enabled?: boolean; daily_quota_per_account?: number; max_followups?: number; stop_on_own_message?: boolean; scheduled_at?: string; schedule_timezone?: string }

export type CampaignSends = { sent: number; failed: number; ambiguous: number }

export type CampaignState = { id: string; status: 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'; cancelled_at: string | null }

export type CampaignStep = { branch: 'no_reply' | 'seen' | 'unseen'; wait_hours: number; variants: (string)[] }

export type CampaignStepRequest = { branch: 'no_reply' | 'seen' | 'unseen'; wait_hours: number; variants: (string)[] }

export type CampaignTimelineEntry = { type: 'message' | 'read' | 'reply' | 'block'; at: string; step: number; variant: number | null; message_id: string | null; operation_id: string | null }

export type CampaignTotals = { queued: number; submitting: number; waiting: number; completed: number; replied: number; failed: number; ambiguous: number; cancelled: number; suppressed: number }

export type CampaignVerification = { ok: boolean; checks: (CampaignCheck)[] }

export type CampaignWithRecipients = { campaign: CampaignDetail; next_cursor: string | null; has_more: boolean }

export type Capability = { open: boolean; closed_by: { kind: 'gate' | 'role' | 'allowlist'; name: string } | null }

export type Chat = { account_id: string; id: string; name: string; provider: string; kind: 'private' | 'group' | 'channel'; last_message_text: string | null; last_message_at: string | null; unread_count: number }

export type ChatCampaign = { id: string; name: string | null; status: 'scheduled' | 'queued' | 'sending' | 'paused' | 'cancelled' | 'completed'; recipient: { status: 'queued' | 'submitting' | 'waiting' | 'completed' | 'replied' | 'failed' | 'ambiguous' | 'cancelled' | 'suppressed'; step: number; next_action_at: string | null; opted_out: boolean } }

export type ChatDetail = { account_id: string; id: string; name: string; provider: string; kind: 'private' | 'group' | 'channel'; last_message_text: string | null; last_message_at: string | null; unread_count: number; username: string | null; participants: (Participant)[]; stage_key: string | null; columns: (ColumnValue)[] }

export type ChatPage = { chats: (Chat)[]; next_cursor: string | null; has_more: boolean }

export type ChatResult = { chat: ChatDetail }

export type ChatStarted = { chat: StartedChat; created: boolean }

export type ChatSuppression = { kind: 'platform_id' | 'username' | 'phone'; value: string; source: 'operator' | 'import' | 'opt_out'; evidence: Record<string, unknown>; created_at: string }

export type Column = { id: string; name: string; type: 'select' | 'multi_select' | 'text' | 'number' | 'date' | 'checkbox' | 'url'; options: (ColumnOption)[] }

export type ColumnCell = { account_id: string; chat_id: string; column_id: string; value: (string)[] }

export type ColumnOption = { value: string; color: string | null }

export type ColumnSet = { ok: true; message: string; account_id: string; chat_id: string; column_id: string; value: (string)[] }

export type ColumnValue = { column_id: string; value: (string)[] }

export type Columns = { columns: (Column)[]; values: (ColumnCell)[]; next_cursor: string | null; has_more: boolean }

export type Completeness = { complete: boolean; accounts: (AccountCompleteness)[] }

export type Contact = { account_id: string; provider_id: string; name: string; username: string | null }

export type ContactPage = { contacts: (Contact)[]; next_cursor: string | null; has_more: boolean }

export type CreatedCampaign = { campaign: Campaign; queued: true; warnings: ('steps_truncated' | 'scheduled_at_adjusted' | 'already_in_campaign')[] }

export type DashboardAccount = { id: string; platform: string; name: string; status: 'CONNECTING' | 'READY' | 'NEEDS_LOGIN' | 'RESTRICTED' | 'DISABLED'; status_reason: string | null; created_at: string; platform_user: { id: string; username: string | null; phone: string | null } | null; login_stored: boolean; live: boolean; not_live_since: string | null; sync: { phase: 'not_begun' | 'chats' | 'contacts' | 'history' | 'done'; done: number | null; total: number | null }; gap_since: string | null; login_code_at: string | null; today: { campaign_messages: { used: number; limit: number | null }; first_messages: { used: number; limit: number | null }; lookups: { used: number; limit: number | null } }; sends_wait_until: string | null; lookups_wait_until: string | null; reading_waits_until: string | null; first_messages_stopped_at: string | null; campaigns_held_at: string | null; cold_per_day: number | null; proxy: string | null; sent_per_day: (number)[]; strikes: ({ kind: string; at: string; seconds: number | null })[]; waiting: ({ campaign_id: string; name: string | null; recipients: number })[] }

export type DashboardStage = { key: string; label: string; color: string | null; terminal: boolean; hidden: boolean }

export type DayCounts = { day: string; received: number; sent: number }

export type DeletedWebhook = { ok: true; message: string }

export type DeletionEventData = { account_id: string; chat_id: string; message_ids: (string)[] }

export type Delivery = { id: string; event_id: string; type: string; sequence: number | null; state: 'pending' | 'delivered' | 'failed'; attempts: number; next_attempt_at: string | null; created_at: string; delivered_at: string | null; last: LastAttempt }

export type DeliveryAttempt = { n: number; at: string; status: number | null; ms: number; error: string | null; response: string | null }

export type DeliveryDetail = { id: string; event_id: string; type: string; sequence: number | null; state: 'pending' | 'delivered' | 'failed'; attempts: number; next_attempt_at: string | null; created_at: string; delivered_at: string | null; last: LastAttempt; body: string; tries: (DeliveryAttempt)[] }

export type DeliveryPage = { deliveries: (Delivery)[]; next_cursor: string | null; has_more: boolean }

export type DeliveryResult = { delivery: DeliveryDetail }

export type ErasedEventData = { erased: true }

export type Erasure = { id: string; state: 'waiting' | 'running' | 'done'; cleared: number; total: number; at: string; done_at: string | null }

export type ErasureAnswer = { erasure: Erasure | null }

export type ErasureBegun = { erasure: Erasure }

export type ErasurePreview = { person_id: string; removes: ErasurePreviewRemoves; stays: ErasurePreviewStays; preview: string; erasure: Erasure | null }

export type ErasurePreviewRemoves = { messages: number; chats: number; files: number; campaigns: number; notes: number; column_values: number; names: number }

export type ErasurePreviewStays = { operations: number }

export type ErasureRequest = { preview: string; contact_allowed?: boolean }

export type Event = MessageReceivedEvent | MessageEditedEvent | MessageDeletedEvent | PipelineMovedEvent | CampaignRepliedEvent

export type EventActor = { type: 'key' | 'user' | 'cli' | 'system'; id: string }

export type EventPage = { events: (Event)[]; next_cursor: string | null; has_more: boolean }

export type ExcludedRecipient = { account_id: string | null; chat_id: string | null; identifier: string | null; code: string }

export type ExplainedRecipient = { id: string; account_id: string | null; chat_id: string | null; identifier: string | null; name: string | null; status: 'queued' | 'submitting' | 'waiting' | 'completed' | 'replied' | 'failed' | 'ambiguous' | 'cancelled' | 'suppressed'; reason: string | null; step: number; next_action_at: string | null; blocked_by: 'scheduled' | 'waiting' | 'quota' | 'pacing' | 'flood_wait' | 'account_not_ready' | 'ambiguous' | 'gate' | 'window' | 'paused' | null; timeline: (CampaignTimelineEntry)[]; opted_out: boolean; sentence: string }

export type FoundPerson = { id: string; platform: string; platform_id: string; name: string | null; names: (string)[]; suppressed: boolean }

export type InboxChat = { account_id: string; id: string; name: string; provider: string; kind: 'private' | 'group' | 'channel'; last_message_text: string | null; last_message_at: string | null; unread_count: number; username: string | null; last_is_sender: boolean | null; last_attempt: { state: 'sending' | 'accepted' | 'refused' | 'ambiguous'; text: string; at: string } | null; suppressed: boolean; asked_to_stop: boolean; stage_key: string | null; assignee: { user_id: string; name: string } | null; columns: (ColumnValue)[] }

export type Key = { name: string; prefix: string; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[] }

export type LastAttempt = { at: string; status: number | null; ms: number; error: string | null } | null

export type Me = { workspace_id: string; workspace: Workspace; key: Key; accounts: (Account)[]; capabilities: Record<string, boolean>; contract_version: string }

export type Message = { id: string; text: string; is_sender: boolean; timestamp: string; edited_at: string | null; attachments: (Attachment)[] }

export type MessageCounts = { received: number; sent: number }

export type MessageDeletedEvent = { id: string; type: 'message.deleted'; api_version: string; workspace_id: string; sequence: number; occurred_at: string; created_at: string; data: DeletionEventData | ErasedEventData }

export type MessageEditedEvent = { id: string; type: 'message.edited'; api_version: string; workspace_id: string; sequence: number; occurred_at: string; created_at: string; data: MessageEventData | ErasedEventData }

export type MessageEventData = { account_id: string; chat_id: string; message: Message }

export type MessagePage = { messages: (Message)[]; source: 'store' | 'platform'; next_before: string | null; has_more: boolean }

export type MessageReceivedEvent = { id: string; type: 'message.received'; api_version: string; workspace_id: string; sequence: number; occurred_at: string; created_at: string; data: MessageEventData | ErasedEventData }

export type MoveEventData = { account_id: string; chat_id: string; from_stage_key: string; to_stage_key: string; actor: EventActor }

export type MoveRequest = { account_id?: string; chat_id: string; stage_key: string }

export type MoveResult = { ok: true; message: string; account_id: string; chat_id: string; stage_key: string; changed: boolean }

export type NextMessage = { at: string | null; sentence: string } | null

export type Operation = { id: string; kind: string; state: 'queued' | 'submitting' | 'completed' | 'refused' | 'released' | 'ambiguous'; account_id: string | null; chat_id: string | null; created_at: string; crossed_at: string | null; finished_at: string | null; reconciled: boolean; reason: string | null; detail: string; message_id: string | null }

export type OperationAnswer = { operation: Operation }

export type Participant = { id: string; name: string; username: string | null; kind: string }

export type PersonAnswer = { person: PersonRecord }

export type PersonCampaign = { id: string; name: string | null; status: string; created_at: string; recipient_id: string; account_id: string | null; contact: string; given_name: string | null; told_name: string | null; recipient_status: 'queued' | 'submitting' | 'waiting' | 'completed' | 'replied' | 'failed' | 'ambiguous' | 'cancelled' | 'suppressed'; step: number; reason: string | null; opted_out: boolean; last_sent_at: string | null; replied_at: string | null; next_action_at: string | null; ended_at: string | null }

export type PersonChat = { account_id: string; chat_id: string; name: string; stage_key: string; last_message_at: string | null; assignee: TeamMember | null }

export type PersonColumnValue = { account_id: string; chat_id: string; column_id: string; name: string; value: (string)[]; updated_at: string }

export type PersonName = { kind: 'name' | 'username' | 'phone'; value: string; account_id: string; source: 'platform' | 'chat' | 'contact'; since: string | null; last_seen_at: string | null; until: string | null }

export type PersonNote = { id: string; account_id: string; chat_id: string; at: string; text: string; author: TeamMember }

export type PersonPage = { people: (FoundPerson)[]; next_cursor: string | null; has_more: boolean }

export type PersonRecord = { id: string; platform: string; platform_id: string; name: string | null; first_seen_at: string; names: (PersonName)[]; chats: (PersonChat)[]; suppressions: (PersonSuppression)[]; campaigns: (PersonCampaign)[]; columns: (PersonColumnValue)[]; notes: (PersonNote)[]; sent: (PersonSent)[] }

export type PersonSent = { account_id: string; chat_id: string; at: string; message_id: string | null; state: string; by: SentBy | null; campaign: SentInCampaign | null; operation_id: string | null }

export type PersonSuppression = { kind: 'platform_id' | 'username' | 'phone'; value: string; source: 'operator' | 'import' | 'opt_out'; evidence: Record<string, unknown>; created_at: string }

export type Pipeline = { stages: (Stage)[]; placements: (Placement)[]; next_cursor: string | null; has_more: boolean }

export type PipelineMovedEvent = { id: string; type: 'pipeline.moved'; api_version: string; workspace_id: string; sequence: number; occurred_at: string; created_at: string; data: MoveEventData | ErasedEventData }

export type Placement = { account_id: string; chat_id: string; stage_key: string }

export type PlannedMessage = { step: number; branch: 'no_reply' | 'seen' | 'unseen' | null; account_id: string; at: string }

export type QueuedDelivery = { ok: true; message: string; delivery: Delivery }

export type ReadStateRequest = { account_id: string; unread: boolean }

export type ReadStateResult = { ok: true; message: string; account_id: string; chat_id: string; unread: boolean }

export type RecipientTexts = { account_id: string | null; chat_id: string | null; identifier: string | null; messages: (StepTexts)[] }

export type ReplyEventData = { campaign_id: string; recipient_id: string; account_id: string; chat_id: string; message_id: string; step: number; variant: number; opted_out: boolean }

export type ResendRequest = { since: string }

export type ResendResult = { ok: true; message: string; queued: number }

export type Retention = { messages_days: number | null; operations_days: number | null; recipients_days: number | null; notes_days: number | null }

export type SavedReply = { id: string; title: string; text: string; updated_at: string }

export type SearchMatch = { account_id: string; chat_id: string; message_id: string; excerpt: string; is_sender: boolean; timestamp: string }

export type SearchRequest = { query?: string; account_id?: string; chat_id?: string; limit?: number; cursor?: string; people?: (string)[]; keywords?: (string)[]; time_after?: string; time_before?: string; account_types?: 'messaging' | 'email' | 'all' }

export type SearchResult = { matches: (SearchMatch)[]; match_count: number; match_count_capped?: true; next_cursor: string | null; has_more: boolean; chats: (SearchedChat)[]; platforms_searched: (string)[]; context: string; completeness: Completeness }

export type SearchedChat = { account_id: string; chat_id: string; chat_name: string; provider: string }

export type SendMessageRequest = { account_id?: string; chat_id: string; text: string }

export type SentBy = { kind: 'user' | 'key' | 'campaign' | 'agent' | 'elsewhere'; user_id: string | null; name: string | null }

export type SentInCampaign = { id: string; name: string | null; step: number }

export type SentMessage = { ok: true; message: string; operation_id: string; account_id: string; chat_id: string; message_id: string; timestamp: string }

export type SetColumnRequest = { account_id?: string; chat_id: string; column_id: string; value: (string)[] }

export type Stage = { key: string; label: string; terminal: boolean; hidden: boolean }

export type StartChatRequest = { account_id: string; identifier: string; provider?: string; text?: string }

export type StartedChat = { id: string; account_id: string; name: string; username: string | null }

export type StepTexts = { step: number; branch: 'no_reply' | 'seen' | 'unseen' | null; variants: (string | null)[] }

export type SuppressedPerson = { platform_id: string; names: (string)[]; since: string | null; until: string | null; released: boolean }

export type Suppression = { kind: 'platform_id' | 'username' | 'phone'; value: string; source: 'operator' | 'import' | 'opt_out'; evidence: Record<string, unknown>; created_at: string; name: string | null; people: (SuppressedPerson)[] }

export type TeamMember = { user_id: string; name: string }

export type TimelineMessage = { type: 'message'; id: string; at: string; is_sender: boolean; text: string; edited_at: string | null; attachments: (Attachment)[]; state: 'accepted' | 'ambiguous' | null; read_at: string | null; by: SentBy | null; campaign: SentInCampaign | null; operation_id: string | null }

export type TimelineNote = { type: 'note'; id: string; at: string; text: string; author: { user_id: string; name: string }; deletable: boolean }

export type TimelineOperation = { type: 'operation'; id: string; at: string; text: string; file_name: string | null; state: 'sending' | 'refused' | 'ambiguous'; closed_as: 'sent' | 'not_sent' | null; sentence: string; by: SentBy | null; campaign: SentInCampaign | null }

export type TimetableRow = { account_id: string | null; chat_id: string | null; identifier: string | null; messages: (PlannedMessage)[] }

export type Webhook = { id: string; url: string; events: (string)[]; active: boolean; created_at: string; consecutive_failures: number; disabled_at: string | null; created_by: WebhookCreator; stop_reason: 'maker_removed' | 'maker_disabled' | null }

export type WebhookCreator = { user_id: string; name: string } | null

export type WebhookList = { webhooks: (Webhook)[] }

export type WebhookRequest = { url: string; events?: ('message.received' | 'message.edited' | 'message.deleted' | 'pipeline.moved' | 'campaign.replied' | '*')[] }

export type WebhookResult = { webhook: Webhook }

export type WebhookUpdate = { url?: string; events?: ('message.received' | 'message.edited' | 'message.deleted' | 'pipeline.moved' | 'campaign.replied' | '*')[]; active?: boolean }

export type WebhookWithSecret = { webhook: Webhook; secret: string }

export type Workspace = { id: string; name: string }

export interface Routes {
  'GET /approvals': {
    query?: { state?: 'waiting' | 'history'; cursor?: string; limit?: number }
    answer: { approvals: (Approval)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /approvals/{request_id}': {
    params: { request_id: string }
    answer: { approval: Approval }
  }
  'POST /approvals/{request_id}/approve': {
    params: { request_id: string }
    answer: { token: string; expires_at: string }
  }
  'POST /approvals/{request_id}/deny': {
    params: { request_id: string }
    answer: { ok: true; message: string }
  }
  'GET /sign-in': {
    answer: { local: true; oidc: { label: string } | null }
  }
  'POST /sign-in': {
    body: { email: string; password: string }
    answer: { user: { id: string; email: string; name: string; operator: boolean; time_zone: string | null; has_password: boolean } }
  }
  'POST /setup/look': {
    body: { token: string }
    answer: { email: string; expires_at: string; oidc: { label: string } | null }
  }
  'POST /setup': {
    body: { token: string; password: string }
    answer: { user: { id: string; email: string; name: string; operator: boolean; time_zone: string | null; has_password: boolean } }
  }
  'POST /sign-out': {
    answer: { ok: true; message: string }
  }
  'GET /session': {
    answer: { user: { id: string; email: string; name: string; operator: boolean; time_zone: string | null; has_password: boolean }; session: { id: string; created_at: string; expires_at: string }; workspaces: ({ id: string; name: string; role: 'member' | 'admin' | 'owner'; disabled_at: string | null; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[] })[]; base_url: string; version: string }
  }
  'PATCH /profile': {
    body: { name?: string; time_zone?: string | null }
    answer: { user: { id: string; email: string; name: string; operator: boolean; time_zone: string | null; has_password: boolean } }
  }
  'POST /password': {
    body: { current_password?: string; password: string }
    answer: { ok: true; message: string }
  }
  'GET /sessions': {
    answer: { sessions: ({ id: string; created_at: string; expires_at: string; last_seen_at: string; user_agent: string; current: boolean; identity: { issuer: string } })[] }
  }
  'POST /sessions/{session_id}/revoke': {
    params: { session_id: string }
    answer: { ok: true; message: string }
  }
  'POST /sessions/revoke-others': {
    answer: { ok: true; message: string; revoked: number }
  }
  'POST /setup/oidc': {
    body: { token: string }
    answer: { location: string }
  }
  'GET /gates': {
    answer: { gates: ({ name: 'rest' | 'crm' | 'pipeline' | 'analytics' | 'start_chat' | 'campaigns' | 'scoped_routing' | 'campaign_mutation' | 'branching' | 'read_receipts' | 'broadcast' | 'extended' | 'mcp_send' | 'mcp_pipeline' | 'mcp_columns'; enabled: boolean; changed_at: string | null; description: string; noticed_by: string })[] }
  }
  'POST /gates/{name}': {
    params: { name: string }
    body: { enabled: boolean }
    answer: { gate: { name: 'rest' | 'crm' | 'pipeline' | 'analytics' | 'start_chat' | 'campaigns' | 'scoped_routing' | 'campaign_mutation' | 'branching' | 'read_receipts' | 'broadcast' | 'extended' | 'mcp_send' | 'mcp_pipeline' | 'mcp_columns'; enabled: boolean; changed_at: string | null; description: string; noticed_by: string } }
  }
  'GET /allowlists': {
    answer: { campaign_user: ({ id: string; label: string })[]; campaign_workspace: ({ id: string; label: string })[] }
  }
  'POST /allowlists/{list}': {
    params: { list: string }
    body: { id: string; listed: boolean }
    answer: { ok: true; message: string }
  }
  'GET /sending': {
    answer: { on: boolean; stop: string | null; since: string | null; reason: string | null }
  }
  'GET /dispatch': {
    answer: { dispatch: boolean; since: string | null; reason: string | null; owing: ({ id: string; beat_at: string })[]; unconfirmed: ({ account_id: string; workspace_id: string; status: string })[] }
  }
  'POST /dispatch': {
    body: { on: true } | { on: false; reason?: string }
    answer: { dispatch: boolean; since: string | null; reason: string | null; owing: ({ id: string; beat_at: string })[]; unconfirmed: ({ account_id: string; workspace_id: string; status: string })[] }
  }
  'POST /dispatch/without': {
    body: { worker_id: string }
    answer: { ok: true; message: string }
  }
  'GET /users': {
    answer: { users: ({ id: string; email: string; name: string; time_zone: string | null; has_password: boolean; operator: boolean; created_at: string; disabled_at: string | null; memberships: ({ workspace_id: string; role: 'member' | 'admin' | 'owner' })[] })[] }
  }
  'POST /users': {
    body: { email: string; workspace_id: string; role: 'member' | 'admin' | 'owner'; operator?: boolean }
    answer: { user: { id: string; email: string; name: string; time_zone: string | null; has_password: boolean; operator: boolean; created_at: string; disabled_at: string | null; memberships: ({ workspace_id: string; role: 'member' | 'admin' | 'owner' })[] }; setup_link: string | null }
  }
  'PATCH /users/{user_id}': {
    params: { user_id: string }
    body: { name?: string; email?: string; operator?: boolean }
    answer: { user: { id: string; email: string; name: string; time_zone: string | null; has_password: boolean; operator: boolean; created_at: string; disabled_at: string | null; memberships: ({ workspace_id: string; role: 'member' | 'admin' | 'owner' })[] } }
  }
  'POST /users/{user_id}/enable': {
    params: { user_id: string }
    answer: { user: { id: string; email: string; name: string; time_zone: string | null; has_password: boolean; operator: boolean; created_at: string; disabled_at: string | null; memberships: ({ workspace_id: string; role: 'member' | 'admin' | 'owner' })[] } }
  }
  'POST /users/{user_id}/disable': {
    params: { user_id: string }
    answer: { user: { id: string; email: string; name: string; time_zone: string | null; has_password: boolean; operator: boolean; created_at: string; disabled_at: string | null; memberships: ({ workspace_id: string; role: 'member' | 'admin' | 'owner' })[] } }
  }
  'POST /users/{user_id}/setup-link': {
    params: { user_id: string }
    answer: { setup_link: string; expires_at: string }
  }
  'GET /workspaces': {
    answer: { workspaces: ({ id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; created_at: string; disabled_at: string | null })[] }
  }
  'POST /workspaces': {
    body: { name: string; timezone?: string }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; created_at: string; disabled_at: string | null } }
  }
  'PATCH /workspaces/{workspace_id}': {
    params: { workspace_id: string }
    body: { name?: string; timezone?: string }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; created_at: string; disabled_at: string | null } }
  }
  'POST /workspaces/{workspace_id}/enable': {
    params: { workspace_id: string }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; created_at: string; disabled_at: string | null } }
  }
  'POST /workspaces/{workspace_id}/disable': {
    params: { workspace_id: string }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; created_at: string; disabled_at: string | null } }
  }
  'GET /accounts': {
    answer: { accounts: ({ id: string; workspace_id: string; workspace_name: string; platform: string; name: string; status: 'CONNECTING' | 'READY' | 'NEEDS_LOGIN' | 'RESTRICTED' | 'DISABLED'; status_reason: string | null; first_messages_stopped_at: string | null; campaigns_held_at: string | null; campaigns_held_by: string | null })[] }
  }
  'GET /operations/ambiguous': {
    answer: { operations: ({ id: string; workspace_id: string; account_id: string; chat_id: string | null; kind: string; reason: string | null; detail: string; created_at: string })[] }
  }
  'POST /operations/{operation_id}/close': {
    params: { operation_id: string }
    body: { sent: boolean }
    answer: { operation: { id: string; workspace_id: string; account_id: string; chat_id: string | null; kind: string; reason: string | null; detail: string; created_at: string } }
  }
  'GET /audit': {
    query?: { workspace_id?: string; action?: string; actor?: string; cursor?: string; limit?: number }
    answer: { rows: ({ seq: string; at: string; actor: string; actor_email: string | null; action: string; target: string; workspace_id: string | null; workspace_name: string | null; detail: Record<string, unknown> })[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /audit/verdict': {
    answer: { verdict: { ok: boolean; rows: number; seq?: string; problem?: string; at: string } | null; actions: (string)[] }
  }
  'POST /audit/verify': {
    answer: { verdict: { ok: boolean; rows: number; seq?: string; problem?: string; at: string } }
  }
  'GET /instance': {
    answer: { version: string; node: string; database: { version: string; size: number; connections: number; connections_max: number; migration: string; embedded: boolean }; workers: ({ id: string; state: 'driving' | 'without_journal' | 'owing' | 'silent' | 'stopped'; version: string; started_at: string; beat_at: string; platforms: (string)[]; accounts: number; failing: (string)[]; disk_free: number | null })[]; queued: number; queued_seconds: number | null; ambiguous: number; files_waiting: number }
  }
  'GET /stream': {
    answer: ({ workspace_id: string | null; kind: 'chats' | 'messages' | 'operations' | 'notes' | 'assignees' | 'pipeline' | 'columns' | 'saved_replies' | 'accounts' | 'campaigns' | 'suppressions' | 'people' | 'approvals' | 'keys' | 'members' | 'webhooks' | 'gates' | 'workspace' | 'instance' | 'sessions' | 'presence' | 'everything'; account_id?: string; chat_id?: string; user_id?: string; state?: 'open' | 'typing' | 'gone' })[]
  }
  'GET /w/{workspace_id}/me': {
    params: { workspace_id: string }
    answer: Me
  }
  'POST /w/{workspace_id}/chats/start': {
    params: { workspace_id: string }
    body: StartChatRequest
    answer: ChatStarted
  }
  'GET /w/{workspace_id}/chats': {
    params: { workspace_id: string }
    query?: { account_id?: string; cursor?: string; limit?: number; stage_key?: string; column_id?: string; column_value?: string }
    answer: ChatPage
  }
  'GET /w/{workspace_id}/chats/{chat_id}': {
    params: { workspace_id: string; chat_id: string }
    query?: { account_id?: string }
    answer: ChatResult
  }
  'POST /w/{workspace_id}/chats/{chat_id}/read-state': {
    params: { workspace_id: string; chat_id: string }
    body: ReadStateRequest
    answer: ReadStateResult
  }
  'GET /w/{workspace_id}/chats/{chat_id}/messages': {
    params: { workspace_id: string; chat_id: string }
    query?: { account_id?: string; before?: string; limit?: number }
    answer: MessagePage
  }
  'POST /w/{workspace_id}/messages': {
    params: { workspace_id: string }
    body: SendMessageRequest
    answer: SentMessage
  }
  'GET /w/{workspace_id}/chats/{chat_id}/messages/{message_id}/attachments/{index}': {
    params: { workspace_id: string; chat_id: string; message_id: string; index: string }
    query?: { account_id?: string }
    answer: unknown
  }
  'GET /w/{workspace_id}/contacts': {
    params: { workspace_id: string }
    query?: { account_id?: string; cursor?: string; limit?: number; q?: string }
    answer: ContactPage
  }
  'GET /w/{workspace_id}/people': {
    params: { workspace_id: string }
    query: { q: string; cursor?: string; limit?: number }
    answer: PersonPage
  }
  'GET /w/{workspace_id}/people/{person_id}': {
    params: { workspace_id: string; person_id: string }
    answer: PersonAnswer
  }
  'GET /w/{workspace_id}/people/{person_id}/export': {
    params: { workspace_id: string; person_id: string }
    answer: unknown
  }
  'GET /w/{workspace_id}/people/{person_id}/erase': {
    params: { workspace_id: string; person_id: string }
    answer: ErasurePreview
  }
  'POST /w/{workspace_id}/people/{person_id}/erase': {
    params: { workspace_id: string; person_id: string }
    body: ErasureRequest
    answer: ErasureBegun
  }
  'GET /w/{workspace_id}/people/{person_id}/erasure': {
    params: { workspace_id: string; person_id: string }
    answer: ErasureAnswer
  }
  'POST /w/{workspace_id}/search': {
    params: { workspace_id: string }
    body: SearchRequest
    answer: SearchResult
  }
  'GET /w/{workspace_id}/pipeline': {
    params: { workspace_id: string }
    query?: { cursor?: string; limit?: number }
    answer: Pipeline
  }
  'POST /w/{workspace_id}/pipeline/move': {
    params: { workspace_id: string }
    body: MoveRequest
    answer: MoveResult
  }
  'GET /w/{workspace_id}/columns': {
    params: { workspace_id: string }
    query?: { account_id?: string; cursor?: string; limit?: number }
    answer: Columns
  }
  'POST /w/{workspace_id}/columns/set': {
    params: { workspace_id: string }
    body: SetColumnRequest
    answer: ColumnSet
  }
  'GET /w/{workspace_id}/analytics': {
    params: { workspace_id: string }
    query?: { period?: '7d' | '30d' | 'all' }
    answer: Analytics
  }
  'GET /w/{workspace_id}/campaigns': {
    params: { workspace_id: string }
    query?: { cursor?: string; limit?: number }
    answer: CampaignPage
  }
  'GET /w/{workspace_id}/campaigns/{campaign_id}': {
    params: { workspace_id: string; campaign_id: string }
    query?: { cursor?: string; limit?: number }
    answer: CampaignWithRecipients
  }
  'POST /w/{workspace_id}/campaigns': {
    params: { workspace_id: string }
    body: CampaignRequest
    answer: CreatedCampaign
  }
  'POST /w/{workspace_id}/campaigns/preview': {
    params: { workspace_id: string }
    query?: { cursor?: string; limit?: number }
    body: CampaignRequest
    answer: CampaignForecast
  }
  'GET /w/{workspace_id}/campaigns/{campaign_id}/forecast': {
    params: { workspace_id: string; campaign_id: string }
    query?: { cursor?: string; limit?: number }
    answer: CampaignForecast
  }
  'POST /w/{workspace_id}/campaigns/{campaign_id}/pause': {
    params: { workspace_id: string; campaign_id: string }
    answer: CampaignChange
  }
  'POST /w/{workspace_id}/campaigns/{campaign_id}/resume': {
    params: { workspace_id: string; campaign_id: string }
    answer: CampaignChange
  }
  'POST /w/{workspace_id}/campaigns/{campaign_id}/cancel': {
    params: { workspace_id: string; campaign_id: string }
    answer: CampaignChange
  }
  'GET /w/{workspace_id}/campaigns/{campaign_id}/verify': {
    params: { workspace_id: string; campaign_id: string }
    answer: CampaignVerification
  }
  'POST /w/{workspace_id}/broadcast': {
    params: { workspace_id: string }
    body: BroadcastRequest
    answer: BroadcastResult
  }
  'GET /w/{workspace_id}/broadcast/{broadcast_id}': {
    params: { workspace_id: string; broadcast_id: string }
    answer: Broadcast
  }
  'GET /w/{workspace_id}/events': {
    params: { workspace_id: string }
    query?: { after?: number; cursor?: string; limit?: number; wait?: number }
    answer: EventPage
  }
  'GET /w/{workspace_id}/operations/{operation_id}': {
    params: { workspace_id: string; operation_id: string }
    answer: OperationAnswer
  }
  'POST /w/{workspace_id}/webhooks': {
    params: { workspace_id: string }
    body: WebhookRequest
    answer: WebhookWithSecret
  }
  'GET /w/{workspace_id}/webhooks': {
    params: { workspace_id: string }
    answer: WebhookList
  }
  'PATCH /w/{workspace_id}/webhooks/{webhook_id}': {
    params: { workspace_id: string; webhook_id: string }
    body: WebhookUpdate
    answer: WebhookResult
  }
  'DELETE /w/{workspace_id}/webhooks/{webhook_id}': {
    params: { workspace_id: string; webhook_id: string }
    answer: DeletedWebhook
  }
  'POST /w/{workspace_id}/webhooks/{webhook_id}/rotate-secret': {
    params: { workspace_id: string; webhook_id: string }
    answer: WebhookWithSecret
  }
  'GET /w/{workspace_id}/webhooks/{webhook_id}/deliveries': {
    params: { workspace_id: string; webhook_id: string }
    query?: { state?: 'pending' | 'delivered' | 'failed'; cursor?: string; limit?: number }
    answer: DeliveryPage
  }
  'GET /w/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}': {
    params: { workspace_id: string; webhook_id: string; delivery_id: string }
    answer: DeliveryResult
  }
  'POST /w/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/resend': {
    params: { workspace_id: string; webhook_id: string; delivery_id: string }
    answer: QueuedDelivery
  }
  'POST /w/{workspace_id}/webhooks/{webhook_id}/resend-failed': {
    params: { workspace_id: string; webhook_id: string }
    body: ResendRequest
    answer: ResendResult
  }
  'POST /w/{workspace_id}/webhooks/{webhook_id}/test': {
    params: { workspace_id: string; webhook_id: string }
    answer: QueuedDelivery
  }
  'GET /w/{workspace_id}/workspace': {
    params: { workspace_id: string }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null; role: 'member' | 'admin' | 'owner' }; dispatch: { on: boolean; reason: string | null }; stopped_webhooks: number; opt_out_words: (string)[]; capabilities: { read: Capability; history: Capability; media: Capability; send: Capability; start_chat: Capability; read_state: Capability; search: Capability; contacts: Capability; pipeline: Capability; columns: Capability; analytics: Capability; campaigns: Capability; create_campaign: Capability; broadcast: Capability; webhooks: Capability } }
  }
  'PATCH /w/{workspace_id}/workspace': {
    params: { workspace_id: string }
    body: { name?: string; timezone?: string; sending_window?: string | null }
    answer: { workspace: { id: string; name: string; timezone: string; timezone_before: string | null; timezone_from: string | null; sending_window: string | null } }
  }
  'GET /w/{workspace_id}/accounts': {
    params: { workspace_id: string }
    answer: { accounts: (DashboardAccount)[]; timezone: string; today: string; platforms: (string)[] }
  }
  'GET /w/{workspace_id}/accounts/{account_id}': {
    params: { workspace_id: string; account_id: string }
    answer: { account: DashboardAccount }
  }
  'POST /w/{workspace_id}/accounts': {
    params: { workspace_id: string }
    body: { name: string; platform?: 'telegram' | 'sandbox'; cold_per_day?: number | null; proxy?: string | null }
    answer: { account: DashboardAccount }
  }
  'PATCH /w/{workspace_id}/accounts/{account_id}': {
    params: { workspace_id: string; account_id: string }
    body: { name?: string; cold_per_day?: number | null; proxy?: string | null }
    answer: { account: DashboardAccount }
  }
  'POST /w/{workspace_id}/accounts/{account_id}/enable': {
    params: { workspace_id: string; account_id: string }
    answer: { account: DashboardAccount }
  }
  'POST /w/{workspace_id}/accounts/{account_id}/disable': {
    params: { workspace_id: string; account_id: string }
    answer: { account: DashboardAccount }
  }
  'POST /w/{workspace_id}/accounts/{account_id}/login': {
    params: { workspace_id: string; account_id: string }
    body: { phone?: string }
    answer: { login: AccountLogin | null }
  }
  'GET /w/{workspace_id}/accounts/{account_id}/login': {
    params: { workspace_id: string; account_id: string }
    answer: { login: AccountLogin | null }
  }
  'POST /w/{workspace_id}/accounts/{account_id}/login/answer': {
    params: { workspace_id: string; account_id: string }
    body: { kind: 'code' | 'password' | 'again'; text?: string }
    answer: { login: AccountLogin | null }
  }
  'DELETE /w/{workspace_id}/accounts/{account_id}/login': {
    params: { workspace_id: string; account_id: string }
    answer: { login: AccountLogin | null }
  }
  'POST /w/{workspace_id}/accounts/{account_id}/logout': {
    params: { workspace_id: string; account_id: string }
    answer: { account: DashboardAccount }
  }
  'GET /w/{workspace_id}/analytics/days': {
    params: { workspace_id: string }
    query?: { from?: string; to?: string; account_id?: string }
    answer: { timezone: string; from: string; to: string; days: (DayCounts)[] }
  }
  'GET /w/{workspace_id}/board': {
    params: { workspace_id: string }
    query?: { account_id?: string; column_id?: string; column_value?: string }
    answer: { stages: (BoardStage)[] }
  }
  'GET /w/{workspace_id}/broadcasts': {
    params: { workspace_id: string }
    query?: { cursor?: string; limit?: number }
    answer: { broadcasts: (BroadcastRow)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/audience': {
    params: { workspace_id: string }
    query?: { account_id?: string; stage_key?: string; column_id?: string; column_value?: string; needs_name?: 'true' | 'false'; cursor?: string; limit?: number }
    answer: { counts: { chats: number; can_receive: number; left_out: { not_ready: number; no_person: number; suppressed: number; nameless: number } }; broadcast: { max: number; recipients: number; capped: boolean } | null; people: (AudiencePerson)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/campaign_progress': {
    params: { workspace_id: string }
    query?: { cursor?: string; limit?: number }
    answer: { campaigns: (CampaignProgress)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/campaigns/{campaign_id}/recipients': {
    params: { workspace_id: string; campaign_id: string }
    query?: { status?: 'queued' | 'submitting' | 'waiting' | 'completed' | 'replied' | 'failed' | 'ambiguous' | 'cancelled' | 'suppressed'; name?: string; cursor?: string; limit?: number }
    answer: { created_by: CampaignCreator; recipients: (ExplainedRecipient)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/chats/{chat_id}/campaigns': {
    params: { workspace_id: string; chat_id: string }
    query: { account_id: string }
    answer: { campaigns: (ChatCampaign)[] }
  }
  'POST /w/{workspace_id}/columns': {
    params: { workspace_id: string }
    body: { name: string; type: 'select' | 'multi_select' | 'text' | 'number' | 'date' | 'checkbox' | 'url'; options?: ({ value: string; color?: string | null })[] }
    answer: { column: Column }
  }
  'PATCH /w/{workspace_id}/columns/{column_id}': {
    params: { workspace_id: string; column_id: string }
    body: { name?: string; place?: number }
    answer: { column: Column }
  }
  'DELETE /w/{workspace_id}/columns/{column_id}': {
    params: { workspace_id: string; column_id: string }
    answer: { deleted: true; message: string; values: number }
  }
  'POST /w/{workspace_id}/columns/{column_id}/options': {
    params: { workspace_id: string; column_id: string }
    body: { value: string; color?: string | null }
    answer: { column: Column }
  }
  'PATCH /w/{workspace_id}/columns/{column_id}/options': {
    params: { workspace_id: string; column_id: string }
    body: { value: string; name?: string; color?: string | null; place?: number }
    answer: { column: Column }
  }
  'DELETE /w/{workspace_id}/columns/{column_id}/options': {
    params: { workspace_id: string; column_id: string }
    query: { value: string }
    answer: { deleted: true; message: string; column: Column }
  }
  'GET /w/{workspace_id}/inbox': {
    params: { workspace_id: string }
    query?: { view?: 'all' | 'unread' | 'unanswered' | 'mine'; account_id?: string; stage_key?: string; column_id?: string; column_value?: string; cursor?: string; limit?: number }
    answer: { chats: (InboxChat)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/inbox/counts': {
    params: { workspace_id: string }
    query?: { account_id?: string }
    answer: { all: number; unread: number; unanswered: number; mine: number }
  }
  'GET /w/{workspace_id}/assignees': {
    params: { workspace_id: string }
    answer: { assignees: ({ user_id: string; name: string })[] }
  }
  'PUT /w/{workspace_id}/chats/{chat_id}/assignee': {
    params: { workspace_id: string; chat_id: string }
    body: { account_id: string; user_id: string | null }
    answer: { assignee: { user_id: string; name: string } | null }
  }
  'GET /w/{workspace_id}/keys': {
    params: { workspace_id: string }
    answer: { keys: ({ id: string; name: string; prefix: string; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[]; mcp_only: boolean; issued_by: 'user' | 'operator' | null; user: { id: string; email: string }; created_at: string; expires_at: string | null; revoked_at: string | null; last_used_at: string | null })[] }
  }
  'POST /w/{workspace_id}/keys': {
    params: { workspace_id: string }
    body: { name: string; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[]; expires_at?: string; mcp_only?: boolean }
    answer: { key: { id: string; name: string; prefix: string; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[]; mcp_only: boolean; issued_by: 'user' | 'operator' | null; user: { id: string; email: string }; created_at: string; expires_at: string | null; revoked_at: string | null; last_used_at: string | null }; secret: string }
  }
  'POST /w/{workspace_id}/keys/{key_id}/revoke': {
    params: { workspace_id: string; key_id: string }
    answer: { key: { id: string; name: string; prefix: string; scopes: ('read' | 'write' | 'send' | 'campaigns' | 'people' | 'people_export' | 'people_erase')[]; mcp_only: boolean; issued_by: 'user' | 'operator' | null; user: { id: string; email: string }; created_at: string; expires_at: string | null; revoked_at: string | null; last_used_at: string | null } }
  }
  'GET /w/{workspace_id}/members': {
    params: { workspace_id: string }
    answer: { members: ({ user_id: string; email: string; name: string; role: 'member' | 'admin' | 'owner'; joined_at: string; last_seen_at: string | null; setup_link: { created_at: string; expires_at: string; created_by: { user_id: string; name: string } | null } | null })[] }
  }
  'POST /w/{workspace_id}/members': {
    params: { workspace_id: string }
    body: { email: string; role: 'member' | 'admin' | 'owner' }
    answer: { member: { user_id: string; email: string; name: string; role: 'member' | 'admin' | 'owner'; joined_at: string; last_seen_at: string | null; setup_link: { created_at: string; expires_at: string; created_by: { user_id: string; name: string } | null } | null }; setup_link: string | null }
  }
  'PATCH /w/{workspace_id}/members/{user_id}': {
    params: { workspace_id: string; user_id: string }
    body: { role: 'member' | 'admin' | 'owner' }
    answer: { member: { user_id: string; email: string; name: string; role: 'member' | 'admin' | 'owner'; joined_at: string; last_seen_at: string | null; setup_link: { created_at: string; expires_at: string; created_by: { user_id: string; name: string } | null } | null } }
  }
  'DELETE /w/{workspace_id}/members/{user_id}': {
    params: { workspace_id: string; user_id: string }
    body: { take_over?: { webhooks?: (string)[]; campaigns?: (string)[] } }
    answer: { ok: true; message: string }
  }
  'GET /w/{workspace_id}/members/{user_id}/made': {
    params: { workspace_id: string; user_id: string }
    answer: { webhooks: ({ id: string; url: string; active: boolean })[]; campaigns: ({ id: string; name: string | null; kind: 'scoped' | 'contacts' | 'broadcast'; status: 'scheduled' | 'queued' | 'sending' | 'paused'; stop: 'pause' | 'cancel' })[]; keys: number; links: number; logins: number; can_take_over: { webhooks: boolean; campaigns: boolean } }
  }
  'POST /w/{workspace_id}/members/{user_id}/setup-link': {
    params: { workspace_id: string; user_id: string }
    answer: { setup_link: string; expires_at: string }
  }
  'POST /w/{workspace_id}/chats/{chat_id}/notes': {
    params: { workspace_id: string; chat_id: string }
    body: { account_id: string; text: string }
    answer: { note: { id: string; at: string; text: string; author: { user_id: string; name: string }; deletable: boolean } }
  }
  'DELETE /w/{workspace_id}/notes/{note_id}': {
    params: { workspace_id: string; note_id: string }
    answer: { deleted: true }
  }
  'POST /w/{workspace_id}/operations/{operation_id}/close': {
    params: { workspace_id: string; operation_id: string }
    body: { sent: boolean }
    answer: { operation: Operation }
  }
  'GET /w/{workspace_id}/retention': {
    params: { workspace_id: string }
    answer: { retention: Retention }
  }
  'GET /w/{workspace_id}/retention/preview': {
    params: { workspace_id: string }
    query?: { messages_days?: number; operations_days?: number; recipients_days?: number; notes_days?: number }
    answer: { clears: { messages: number; files: number; operations: number; recipients: number; notes: number } }
  }
  'PUT /w/{workspace_id}/retention': {
    params: { workspace_id: string }
    body: { messages_days: number | null; operations_days: number | null; recipients_days: number | null; notes_days: number | null }
    answer: { retention: Retention }
  }
  'GET /w/{workspace_id}/saved_replies': {
    params: { workspace_id: string }
    answer: { saved_replies: (SavedReply)[] }
  }
  'POST /w/{workspace_id}/saved_replies': {
    params: { workspace_id: string }
    body: { title: string; text: string }
    answer: { saved_reply: SavedReply }
  }
  'PATCH /w/{workspace_id}/saved_replies/{saved_reply_id}': {
    params: { workspace_id: string; saved_reply_id: string }
    body: { title?: string; text?: string }
    answer: { saved_reply: SavedReply }
  }
  'DELETE /w/{workspace_id}/saved_replies/{saved_reply_id}': {
    params: { workspace_id: string; saved_reply_id: string }
    answer: { deleted: true }
  }
  'GET /w/{workspace_id}/stages': {
    params: { workspace_id: string }
    answer: { stages: (DashboardStage)[] }
  }
  'POST /w/{workspace_id}/stages': {
    params: { workspace_id: string }
    body: { label: string; key?: string; color?: string | null; terminal?: boolean; hidden?: boolean }
    answer: { stage: DashboardStage }
  }
  'PATCH /w/{workspace_id}/stages/{stage_key}': {
    params: { workspace_id: string; stage_key: string }
    body: { label?: string; color?: string | null; terminal?: boolean; hidden?: boolean; place?: number }
    answer: { stage: DashboardStage }
  }
  'DELETE /w/{workspace_id}/stages/{stage_key}': {
    params: { workspace_id: string; stage_key: string }
    answer: { deleted: true; message: string; moved: number }
  }
  'GET /w/{workspace_id}/suppressions': {
    params: { workspace_id: string }
    query?: { kind?: 'platform_id' | 'username' | 'phone'; search?: string; cursor?: string; limit?: number }
    answer: { suppressions: (Suppression)[]; next_cursor: string | null; has_more: boolean }
  }
  'GET /w/{workspace_id}/chats/{chat_id}/suppression': {
    params: { workspace_id: string; chat_id: string }
    query: { account_id: string }
    answer: { entries: (ChatSuppression)[] }
  }
  'POST /w/{workspace_id}/suppressions': {
    params: { workspace_id: string }
    body: { kind: 'platform_id' | 'username' | 'phone'; value: string }
    answer: { suppression: { kind: 'platform_id' | 'username' | 'phone'; value: string }; added: boolean }
  }
  'POST /w/{workspace_id}/suppressions/remove': {
    params: { workspace_id: string }
    body: { kind: 'platform_id' | 'username' | 'phone'; value: string; reason: string }
    answer: { suppression: { kind: 'platform_id' | 'username' | 'phone'; value: string }; removed: true; people: (SuppressedPerson)[] }
  }
  'POST /w/{workspace_id}/suppressions/import': {
    params: { workspace_id: string }
    query: { file_name: string }
    body: Blob
    answer: { added: number; skipped_count: number; skipped: ({ line: number; reason: string })[] }
  }
  'GET /w/{workspace_id}/suppressions/export': {
    params: { workspace_id: string }
    answer: string
  }
  'GET /w/{workspace_id}/chats/{chat_id}/timeline': {
    params: { workspace_id: string; chat_id: string }
    query: { account_id: string; before?: string; after?: string; around?: string; limit?: number }
    answer: { items: (TimelineMessage | TimelineOperation | TimelineNote)[]; before: string | null; after: string | null; older_on_platform: boolean }
  }
  'POST /w/{workspace_id}/chats/{chat_id}/presence': {
    params: { workspace_id: string; chat_id: string }
    body: { account_id: string; state: 'open' | 'typing' | 'gone' }
    answer: { others: ({ user_id: string; name: string; state: 'open' | 'typing' })[] }
  }
}

/** Routes that change nothing although they are no GET. */
export const readingRoutes: ReadonlySet<string> = new Set(['POST /setup/look', 'POST /w/{workspace_id}/search', 'POST /w/{workspace_id}/campaigns/preview', 'POST /w/{workspace_id}/chats/{chat_id}/presence'])
