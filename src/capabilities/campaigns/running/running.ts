/** The public module of running campaigns: what the worker, the host of accounts and the campaign pages import from here. */
export { hasBegun } from './counts.ts'
export { messageBoundary } from './crossing.ts'
export { Dispatch } from './dispatch.ts'
export { noteOwnMessages } from './hand-messages.ts'
export { messagesDue } from './loops.ts'
export { identityOf } from './message.ts'
export { noteReads, noteReplies } from './replies.ts'
