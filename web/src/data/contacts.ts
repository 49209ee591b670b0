/** What the page "Contacts" reads, and the one thing it does: start a chat. */

import { infiniteQueryOptions, useMutation } from '@tanstack/react-query'
import { type Answer, ask, Refused } from './api.ts'
import { byCursor } from './by-cursor.ts'
import type { ChatRef } from './chats.ts'
import { newKey } from './kept.ts'
import { keys } from './keys.ts'
import { queryClient } from './queries.ts'

export type Contact = Answer<'GET /w/{workspace_id}/contacts'>['contacts'][number]

export interface ContactFilter {
  readonly workspace_id: string
  readonly account_id: string | undefined
  readonly q: string | undefined
}

/** As many as the service returns at once. */
const pageSize = 200

export const contactsQuery = ({ workspace_id, account_id, q }: ContactFilter) =>
  infiniteQueryOptions({
    queryKey: keys.contacts(workspace_id, account_id ?? null, q ?? null),
    ...byCursor,
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { limit: pageSize, account_id, q, cursor }
      return ask('GET /w/{workspace_id}/contacts', { params: { workspace_id }, query }, { signal })
    },
  })

/** The private chat with a contact has the contact's number, whether or not it was begun. */
export function chatOf(
  workspace_id: string,
  { account_id, provider_id }: Pick<Contact, 'account_id' | 'provider_id'>,
): ChatRef {
  return { workspace_id, account_id, chat_id: `platform:chat:${provider_id}` }
}

interface StartRequest {
  readonly workspace_id: string
  readonly account_id: string
  readonly identifier: string
}

/** The key of each request whose outcome is not known: trying again repeats it, and looks nobody up twice. */
const requestKeys = new Map<string, string>()
const running = new Map<string, ReturnType<typeof askUntilKnown>>()
const inProgressMs = 1_000

/** A second click joins the first. */
function startChat(request: StartRequest) {
  const asked = [request.workspace_id, request.account_id, request.identifier].join(' ')
  const starting = running.get(asked) ?? askUntilKnown(request, asked).finally(() => running.delete(asked))
  running.set(asked, starting)
  return starting
}

async function askUntilKnown({ workspace_id, ...body }: StartRequest, asked: string) {
  const key = requestKeys.get(asked) ?? newKey()
  requestKeys.set(asked, key)
  for (;;) {
    try {
      const input = { params: { workspace_id }, body }
      const { chat } = await ask('POST /w/{workspace_id}/chats/start', input, { key })
      requestKeys.delete(asked)
      return chat
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.code !== 'operation_in_progress') {
        if (isFinal(error)) requestKeys.delete(asked)
        throw error
      }
      await new Promise((resolve) => setTimeout(resolve, inProgressMs))
    }
  }
}

/** A refusal stands for its key. After 429 and 503 the same key may still run. */
function isFinal({ status, code }: Refused): boolean {
  return code === 'outcome_ambiguous' || (status >= 400 && status < 500 && status !== 429)
}

export function useStartChat(onStarted: (chat: ChatRef) => void) {
  return useMutation({
    mutationFn: startChat,
    onSuccess: ({ id, account_id }, { workspace_id }) => {
      for (const name of ['contacts', 'accounts', 'chat', 'inbox'] as const) {
        void queryClient.invalidateQueries({ queryKey: keys[name](workspace_id) })
      }
      onStarted({ workspace_id, account_id, chat_id: id })
    },
  })
}
