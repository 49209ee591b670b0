/** TEMPORARY until the routes are generated. */
import type { Attachment, Routes } from './api-types.ts'

export type Person = { user_id: string; name: string }
export type InboxChat = {
  account_id: string
  id: string
  name: string
  username: string | null
  provider: string
  kind: 'private' | 'group' | 'channel'
  last_message_text: string | null
  last_message_at: string | null
  last_is_sender: boolean | null
  last_state: 'sending' | 'accepted' | 'refused' | 'ambiguous' | null
  unread_count: number
  stage_key: string | null
  assignee: Person | null
}
export type Author = { kind: 'user' | 'key' | 'campaign' | 'agent' | 'elsewhere'; name: string | null } | null
export type CampaignStepOf = { id: string; name: string | null; step: number } | null
export type TimelineMessage = {
  type: 'message'
  id: string
  at: string
  is_sender: boolean
  text: string
  edited_at: string | null
  attachments: Attachment[]
  state: 'accepted' | 'ambiguous' | null
  read_at: string | null
  by: Author
  campaign: CampaignStepOf
  operation_id: string | null
}
export type TimelineOperation = {
  type: 'operation'
  id: string
  at: string
  text: string
  file_name: string | null
  state: 'sending' | 'refused' | 'ambiguous'
  closed_as: 'sent' | 'not_sent' | null
  sentence: string
  by: Author
  campaign: CampaignStepOf
}
export type TimelineNote = {
  type: 'note'
  id: string
  at: string
  text: string
  author: Person
  deletable: boolean
}
export type TimelineItem = TimelineMessage | TimelineOperation | TimelineNote
export type SavedReply = { id: string; title: string; text: string; updated_at: string }
export type Closed = { kind: 'gate' | 'role' | 'allowlist'; name: string } | null

declare module './api-types.ts' {
  interface Routes {
    'GET /w/{workspace_id}/inbox': {
      params: { workspace_id: string }
      query?: {
        view?: 'all' | 'unread' | 'unanswered' | 'mine'
        account_id?: string
        stage_key?: string
        cursor?: string
        limit?: number
      }
      answer: { chats: InboxChat[]; next_cursor: string | null; has_more: boolean }
    }
    'GET /w/{workspace_id}/inbox/counts': {
      params: { workspace_id: string }
      query?: { account_id?: string }
      answer: { all: number; unread: number; unanswered: number; mine: number }
    }
    'GET /w/{workspace_id}/chats/{chat_id}/timeline': {
      params: { workspace_id: string; chat_id: string }
      query: { account_id: string; before?: string; after?: string; around?: string; limit?: number }
      answer: {
        items: TimelineItem[]
        before: string | null
        after: string | null
        older_on_platform: boolean
      }
    }
    'PUT /w/{workspace_id}/chats/{chat_id}/assignee': {
      params: { workspace_id: string; chat_id: string }
      body: { account_id: string; user_id: string | null }
      answer: { assignee: Person | null }
    }
    'POST /w/{workspace_id}/operations/{operation_id}/close': {
      params: { workspace_id: string; operation_id: string }
      body: { sent: boolean }
      answer: { operation: unknown }
    }
    'POST /w/{workspace_id}/chats/{chat_id}/notes': {
      params: { workspace_id: string; chat_id: string }
      body: { account_id: string; text: string }
      answer: { note: TimelineNote }
    }
    'DELETE /w/{workspace_id}/notes/{note_id}': {
      params: { workspace_id: string; note_id: string }
      answer: { deleted: true }
    }
  }
}

export type { Routes }
