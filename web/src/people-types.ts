/** TEMPORARY until the routes are generated. */
import type { Routes } from './api-types.ts'

declare module './api-types.ts' {
  interface Routes {
    'PUT /w/{workspace_id}/chats/{chat_id}/assignee': {
      params: { workspace_id: string; chat_id: string }
      body: { account_id: string; user_id: string | null }
      answer: { assignee: { user_id: string; name: string } | null }
    }
    'POST /w/{workspace_id}/operations/{operation_id}/close': {
      params: { workspace_id: string; operation_id: string }
      body: { sent: boolean }
      answer: { operation: unknown }
    }
  }
}

export type { Routes }
