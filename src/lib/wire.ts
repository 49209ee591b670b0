/** Shapes that the responses of several operations share, each with its name in the OpenAPI document. */
import { z } from 'zod'
import { chatPattern } from './shapes.ts'

export const count = (description: string) => z.int().min(0).meta({ description })

export const said = (description: string) => z.string().meta({ description })

export const accountIdOut = said('Id of the account.')

export const chatIdOut = z.string().meta({
  openapi: { type: 'string', pattern: chatPattern, examples: ['platform:chat:42'] },
  description: 'Id of the chat.',
})

export const messageIdOut = said('Id of the message in its chat.')

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

export const stageKeyOut = said('Key of a stage.')

export const columnValueOut = z
  .array(z.string())
  .meta({ description: 'Value of the chat in the column: one text, or one per option.' })

const attachmentOut = z
  .object({
    index: count('Its index among the files of the message, from 0: the last part of its address.'),
    kind: z
      .enum(['photo', 'voice', 'video', 'sticker', 'file'])
      .meta({ description: 'What it is in the chat. A photo that was sent as a file is a `file`.' }),
    file_name: said('File name.'),
    media_type: said('Media type, such as image/jpeg.'),
    size: count('Size in bytes.'),
    width: count('In pixels, where the platform says.').optional(),
    height: count('In pixels, where the platform says.').optional(),
    seconds: count('How long it plays, where the platform says.').optional(),
  })
  .meta({
    id: 'Attachment',
    description: 'A file attached to a message. `download_attachment` fetches its bytes from the platform.',
  })

export const messageOut = z
  .object({
    id: messageIdOut,
    text: said('Text of the message or caption of its file; may be empty.'),
    is_sender: z.boolean().meta({ description: 'Whether the account sent it.' }),
    timestamp: moment('When it was written.'),
    edited_at: momentOrNull('When it was last edited; null if never.'),
    attachments: z.array(attachmentOut).meta({ description: 'Files attached to it.' }),
  })
  .meta({ id: 'Message', description: 'A message of a chat.' })

/** What the response to every change begins with. */
export const done = {
  ok: z.literal(true).meta({ description: 'Always true: a failure returns an `ApiError`.' }),
  message: said('What was done, as a sentence.'),
}

/** What every page ends with. */
export const pageEnd = {
  next_cursor: z
    .string()
    .nullable()
    .meta({ description: 'Pass it as `cursor` to get the next page; null at the end.' }),
  has_more: z.boolean().meta({ description: 'Whether there is another page.' }),
}
