/** A thread that parses large JSON texts for `large-json.ts`, at a lower priority than every other thread. */
import { parentPort } from 'node:worker_threads'
import { ApiError, type ErrorCode } from './errors.ts'
import { parseJson } from './text.ts'
import { lowerPriority } from './threads.ts'

/** Exactly one of these is set. */
export interface JsonAnswer {
  readonly value?: unknown
  readonly refusal?: { readonly code: ErrorCode; readonly detail: string }
}

lowerPriority()
parentPort?.on('message', (bytes: Uint8Array) => parentPort?.postMessage(answer(bytes)))

function answer(bytes: Uint8Array): JsonAnswer {
  try {
    return { value: parseJson(bytes) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { refusal: { code: error.code, detail: error.message } }
  }
}
