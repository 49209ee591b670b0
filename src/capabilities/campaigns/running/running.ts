/** The door to what runs campaigns: what the worker, the host of accounts and the pages of campaigns ask of it. */
export { hasBegun } from './counts.ts'
export { messageBoundary } from './crossing.ts'
export { Dispatch } from './dispatch.ts'
export { messagesDue } from './loops.ts'
export { identityOf } from './message.ts'
export { noteReads, noteReplies } from './replies.ts'
