/** Every kind of operation on the platform, from all slices. */
import { operations as campaigns } from '../capabilities/campaigns/running/message.ts'
import { operations as start } from '../capabilities/chat-start/chat-start.ts'
import { operations as readState } from '../capabilities/chats/read-state.ts'
import { operations as send } from '../capabilities/messages/send.ts'
import type { OperationKind } from '../operation.ts'

export const operations: readonly OperationKind[] = [...send, ...start, ...readState, ...campaigns]
