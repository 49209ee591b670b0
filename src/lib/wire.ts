/** Shapes that the responses of several operations share, each with its name in the OpenAPI document. */
import { z } from 'zod'
import { chatPattern } from './shapes.ts'

export const count = (description: string) => z.int().min(0).meta({ description })

export const said = (description: string) => z.string().meta({ description })

export const accountIdOut = said('The account of the workspace that it belongs to.')

export const chatIdOut = z.string().meta({
  openapi: { type: 'string', pattern: chatPattern, examples: ['platform:chat:42'] },
  description: 'The chat, as every operation names it.',
})

export const messageIdOut = said('Its number in the chat, as the platform counts.')

/** A moment in UTC, to the millisecond. */
export const moment = (description: string) =>
  z
    .union([z.date(), z.iso.datetime()])
    .meta({ openapi: { type: 'string', format: 'date-time' }, description })

export const momentOrNull = (description: string) =>
  z
    .union([z.date(), z.iso.datetime(), z.null()])
    .meta({ openapi: { type: ['string', 'null'], format: 'date-time' }, description })

export const uuid = (description: string) => z.uuid().meta({ description })

export const stageKeyOut = said('The key of a stage.')

export const columnValueOut = z
  .array(z.string())
  .meta({ description: 'What the chat has in the column: one text, for several options one each.' })

const attachmentOut = z
  .object({
    file_name: said('The name it was sent with.'),
    media_type: said('Such as image/jpeg.'),
    size: count('Its size in bytes.'),
  })
  .meta({ id: 'Attachment', description: 'A file that came with a message. The bytes stay on the platform.' })

export const messageOut = z
  .object({
    id: messageIdOut,
    text: said('The text, or the caption of a file; may be empty.'),
    is_sender: z.boolean().meta({ description: 'True where the account wrote it.' }),
    timestamp: moment('When it was written.'),
    edited_at: momentOrNull('When it was last edited; null where it never was.'),
    attachments: z.array(attachmentOut).meta({ description: 'The files that came with it.' }),
  })
  .meta({ id: 'Message', description: 'A message of a chat.' })

/** What the response to every change begins with. */
export const done = {
  ok: z.literal(true).meta({ description: 'Always true: what failed is an `ApiError`.' }),
  message: said('What was done, as a sentence.'),
}

/** What every page ends with. */
export const pageEnd = {
  next_cursor: z
    .string()
    .nullable()
    .meta({ description: 'Give it as `cursor` for the next page; null at the end.' }),
  has_more: z.boolean().meta({ description: 'Whether there is another page.' }),
}
