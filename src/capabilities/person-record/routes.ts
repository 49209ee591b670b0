import { z } from 'zod'
import { cursor, limit, text } from '../../lib/shapes.ts'
import {
  accountIdOut,
  chatIdOut,
  columnValueOut,
  moment,
  momentOrNull,
  pageEnd,
  said,
  stageKeyOut,
  uuid,
} from '../../lib/wire.ts'
import { Json, ok, type Route, route, Stream } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { recipientOut } from '../campaigns/campaigns.ts'
import { originBy, originCampaign } from '../timeline/timeline.ts'
import { exportPerson, findPeople, readPerson, readPersonPaging, shownMax } from './person-record.ts'

const saidOrNull = (description: string) => z.string().nullable().meta({ description })
const idOut = uuid('Id of the person in this workspace.')
const platformIdOut = said('Their number on the platform.')
const memberOut = z
  .object({ user_id: uuid('Id of the user.'), name: said('Name of the user.') })
  .meta({ id: 'TeamMember', description: 'A user of the workspace.' })
const inChat = { account_id: accountIdOut, chat_id: chatIdOut }

const foundOut = z
  .object({
    id: idOut,
    platform: said('The platform, such as `telegram`.'),
    platform_id: platformIdOut,
    name: saidOrNull('What a chat or a contact calls them; null if none does.'),
    names: z
      .array(said('Such as `username:ines_garcia` or `phone:491705550101`.'))
      .meta({ description: 'Their usernames and phone numbers now.' }),
    suppressed: z.boolean().meta({ description: 'Whether the suppression list stops them.' }),
  })
  .meta({ id: 'FoundPerson', description: 'A person whom an account of the workspace knows.' })

const nameOut = z
  .object({
    kind: z.enum(['name', 'username', 'phone']).meta({ description: 'What `value` is.' }),
    value: said('The name; a username in lower case, a phone number as digits.'),
    account_id: said('The account that saw it.'),
    source: z
      .enum(['platform', 'chat', 'contact'])
      .meta({ description: 'Where from: the platform over time, or what a chat or a contact shows now.' }),
    since: momentOrNull('When the account first saw it; null where only what is shown now is stored.'),
    last_seen_at: momentOrNull('When it last saw it, to the day; null if not known.'),
    until: momentOrNull('When it was no longer theirs; null while it is.'),
  })
  .meta({ id: 'PersonName', description: 'A name of a person, and which account saw it when.' })

const chatOut = z
  .object({
    ...inChat,
    name: said('Name of the chat.'),
    stage_key: stageKeyOut,
    last_message_at: momentOrNull('When its last message was written.'),
    assignee: memberOut.nullable().meta({ description: 'Who answers the chat; null: no one.' }),
  })
  .meta({ id: 'PersonChat', description: 'A private chat with a person.' })

const suppressionOut = z
  .object({
    kind: z.enum(['platform_id', 'username', 'phone']).meta({ description: 'What `value` is.' }),
    value: said('The identity on the list.'),
    source: z.enum(['operator', 'import', 'opt_out']).meta({ description: 'How it came to the list.' }),
    evidence: z.record(z.string(), z.unknown()).meta({
      description: 'For an opt-out, the message that asked; for an import, the file and line.',
    }),
    created_at: moment('When it was added.'),
  })
  .meta({ id: 'PersonSuppression', description: 'An entry of the suppression list that stops a person.' })

const campaignOut = z
  .object({
    id: uuid('Id of the campaign.'),
    name: saidOrNull('Its name.'),
    status: said('Status of the campaign.'),
    created_at: moment('When the campaign was created.'),
    recipient_id: uuid('Id of the recipient.'),
    account_id: saidOrNull('The account that writes to them; null while none has been chosen.'),
    contact: said('How they were given to the campaign.'),
    given_name: saidOrNull('The name that they were given with.'),
    told_name: saidOrNull('What the platform called them.'),
    recipient_status: recipientOut.shape.status,
    step: z.int().min(0).meta({ description: 'How many messages they got.' }),
    reason: saidOrNull('Reason for the final status.'),
    opted_out: z.boolean().meta({ description: 'Whether they asked to stop.' }),
    last_sent_at: momentOrNull('When the last message was sent.'),
    replied_at: momentOrNull('When they replied.'),
    next_action_at: momentOrNull('When the next message is due; null if none is.'),
    ended_at: momentOrNull('When the recipient ended; null while under way.'),
  })
  .meta({ id: 'PersonCampaign', description: 'A campaign that a person is in, and its outcome for them.' })

const noteOut = z
  .object({
    id: uuid('Id of the note.'),
    ...inChat,
    at: moment('When it was written.'),
    text: said('Its text.'),
    author: memberOut,
  })
  .meta({ id: 'PersonNote', description: 'A note of the team on a chat with a person.' })

const valueOut = z
  .object({
    ...inChat,
    column_id: uuid('Id of the column.'),
    name: said('Name of the column.'),
    value: columnValueOut,
    updated_at: moment('When it was set.'),
  })
  .meta({ id: 'PersonColumnValue', description: 'The value of a chat with a person in a column.' })

const sentOut = z
  .object({
    ...inChat,
    at: moment('When it was sent, or requested.'),
    message_id: saidOrNull('Id of the message; null if there is none.'),
    state: said('`accepted` by the platform, or the state of an operation without a message.'),
    by: originBy,
    campaign: originCampaign,
    operation_id: z.uuid().nullable().meta({ description: 'Its operation in the ledger.' }),
  })
  .meta({ id: 'PersonSent', description: 'Something that was sent to a person, and why.' })

const newest = `The newest ${shownMax} at most.`

const personOut = z
  .object({
    id: idOut,
    platform: said('The platform, such as `telegram`.'),
    platform_id: platformIdOut,
    name: saidOrNull('What a chat or a contact calls them; null if none does.'),
    first_seen_at: moment('When Parley first knew of them.'),
    names: z.array(nameOut).meta({ description: `Names now, then those of before. ${newest}` }),
    chats: z.array(chatOut).meta({ description: 'Their private chats with the accounts.' }),
    suppressions: z
      .array(suppressionOut)
      .meta({ description: 'The entries of the suppression list that stop them. Empty: none does.' }),
    campaigns: z.array(campaignOut).meta({ description: `Those under way first. ${newest}` }),
    columns: z.array(valueOut).meta({ description: 'Values in columns.' }),
    notes: z.array(noteOut).meta({ description: `Notes on their chats. ${newest}` }),
    sent: z.array(sentOut).meta({
      description: `What was sent to them, by whom and for what, among the newest 500 messages of each chat. ${newest}`,
    }),
  })
  .meta({ id: 'PersonRecord', description: 'What is stored about a person, without the texts of messages.' })

const person_id = z.string().meta({ description: 'Id of the person, from `GET /people`.' })

const exampleId = '019a7e70-0000-7000-8000-0000000000d1'
const when = '2026-11-15T09:30:00.000Z'
const account_id = 'acc_2Jk9vQ7wXb4LmN8pRt3Z'

export const routes: readonly Route[] = [
  route({
    name: 'find_people',
    method: 'GET',
    path: '/people',
    summary: 'Find people',
    description:
      'Finds people over all accounts of the workspace: by a username or phone number that they have or had, a link to one, ' +
      'their number on the platform, the id of a chat, or the beginnings of words of a name. Exact matches come first.',
    scopes: ['people'],
    effect: 'read',
    costly: true,
    query: z.object({
      q: text(200).meta({ description: 'A name, username, phone number, link or id, in any spelling.' }),
      cursor,
      limit: limit(200, 50),
    }),
    check: (app, caller, { query }) => readPersonPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: z
      .object({ people: z.array(foundOut).meta({ description: 'People who match.' }), ...pageEnd })
      .meta({ id: 'PersonPage', description: 'A page of people.' }),
    example: {
      query: { q: '@ines_garcia' },
      response: {
        people: [
          {
            id: exampleId,
            platform: 'telegram',
            platform_id: '42',
            name: 'Ines García',
            names: ['phone:491705550101', 'username:ines_garcia'],
            suppressed: false,
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, query, checked }) =>
      ok(new Json(await findPeople(app, caller, { query, paging: checked }))),
  }),
  route({
    name: 'get_person',
    method: 'GET',
    path: '/people/{person_id}',
    summary: 'Get a person',
    description:
      'Returns what is stored about a person, by all accounts of the workspace: names and which account saw them when, private ' +
      'chats, campaigns, suppression, notes, column values, and what was sent and why. Texts of messages are not part of it.',
    scopes: ['people'],
    effect: 'read',
    costly: true,
    params: z.strictObject({ person_id }),
    errors: ['not_found'],
    response: z.object({ person: personOut }).meta({ id: 'PersonAnswer', description: 'A person.' }),
    example: {
      params: { person_id: exampleId },
      response: {
        person: {
          id: exampleId,
          platform: 'telegram',
          platform_id: '42',
          name: 'Ines García',
          first_seen_at: when,
          names: [
            {
              kind: 'username',
              value: 'ines_garcia',
              account_id,
              source: 'platform',
              since: when,
              last_seen_at: when,
              until: null,
            },
          ],
          chats: [
            {
              account_id,
              chat_id: 'platform:chat:42',
              name: 'Ines García',
              stage_key: 'new',
              last_message_at: when,
              assignee: null,
            },
          ],
          suppressions: [],
          campaigns: [],
          columns: [],
          notes: [],
          sent: [],
        },
      },
    },
    handle: async (app, { caller, params }) => ok(await readPerson(app, caller, params.person_id)),
  }),
  route({
    name: 'export_person',
    method: 'GET',
    path: '/people/{person_id}/export',
    summary: 'Export a person',
    description:
      'Returns one ZIP archive with everything that is stored about a person: `person.json` (every field, with where it came ' +
      'from), `messages.json` and `messages.html`, and the files that Parley has now, which `files.json` lists. Of groups it has only the ' +
      "person's own messages. Each export is recorded in the audit log. A workspace has one at a time; while it is read, another is 429.",
    scopes: ['people_export'],
    effect: 'read',
    params: z.strictObject({ person_id }),
    errors: ['not_found'],
    saved: 'application/zip',
    response: z.unknown().meta({ description: 'The archive.' }),
    example: { params: { person_id: exampleId }, response: null },
    handle: async (app, { caller, params: { person_id: id }, left }) => {
      const pieces = exportPerson(app, actorOf(caller), { ...caller, id, left: left?.() })
      const file_name = `person-${id.toLowerCase().replaceAll(/[^0-9a-f-]/g, '')}.zip`
      return ok(await Stream.begin(pieces, { media_type: 'application/zip', file_name }))
    },
  }),
]
