/** Error sentences for people at the dashboard, who have no Idempotency-Key to repeat. */
import { ApiError, type ErrorCode } from '../lib/errors.ts'
import type { Reply } from '../route.ts'

const sentences: Partial<Record<ErrorCode, string>> = {
  operation_in_progress: 'This is still in progress. Check again in a moment.',
  outcome_ambiguous:
    'The outcome is unknown. Check the current state before you repeat this: repeating may do it twice.',
}

/** The same answer or refusal, in words for people. */
export async function inUserWords(answer: Promise<Reply>): Promise<Reply> {
  const reply = await answer.catch((error) => {
    throw error instanceof ApiError ? reworded(error) : error
  })
  if (reply.status < 400) return reply
  const { code } = reply.body as { readonly code: ErrorCode }
  const sentence = sentences[code]
  return sentence === undefined ? reply : { ...reply, body: { error: sentence, code } }
}

function reworded(error: ApiError): ApiError {
  const { code, status, cause, retry_after } = error
  const detail = sentences[code]
  if (detail === undefined) return error
  return new ApiError(code, { detail, status, cause, ...(retry_after !== undefined && { retry_after }) })
}
