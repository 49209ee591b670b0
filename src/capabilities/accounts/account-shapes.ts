/** Accounts as the dashboard receives them. */
import { z } from 'zod'
import { count, moment, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { statuses } from './account-row.ts'

const textOrNull = (description: string) => z.string().nullable().meta({ description })
const countOrNull = (description: string) => z.int().min(0).nullable().meta({ description })

const use = (what: string) =>
  z.object({
    used: count(`${what} today.`),
    limit: countOrNull('Limit for today; null: the account has none of its own.'),
  })

export const accountOut = z
  .object({
    id: said('Id of the account.'),
    platform: said('Its platform.'),
    name: said('Name of the account.'),
    status: z.enum(statuses),
    status_reason: textOrNull('What is wrong and how to fix it, as a sentence; null: nothing is wrong.'),
    created_at: moment('When it was created.'),
    platform_user: z
      .object({
        id: said('Id of the user on the platform.'),
        username: textOrNull('Public name, without @; null: none.'),
        phone: textOrNull('Beginning and end of the phone number; null: unknown.'),
      })
      .nullable()
      .meta({ description: 'Its user on the platform; null before the first login.' }),
    login_stored: z.boolean().meta({
      description: 'Whether a login is stored: then enabling it tries once more, also if it needs a login.',
    }),
    live: z.boolean().meta({ description: 'Whether its session is live now.' }),
    not_live_since: momentOrNull('When it was last live; null: it is live now, or was never connected.'),
    sync: z
      .object({
        phase: z.enum(['not_begun', 'chats', 'contacts', 'history', 'done']),
        done: countOrNull('Chats of this phase that are stored; null: this phase has no count.'),
        total: countOrNull('Chats of this phase; null: not known.'),
      })
      .meta({ description: 'Progress of the first sync.' }),
    gap_since: momentOrNull(
      'When updates began to be missed, until its chats are fetched again; null: none were missed.',
    ),
    login_code_at: momentOrNull(
      'When the platform last sent it a login code, or a notice about a login, whose text is not stored; null: not in 30 days, or you are no admin.',
    ),
    today: z
      .object({
        campaign_messages: use('Campaign messages'),
        first_messages: use('Campaign messages to people who never wrote'),
        lookups: use('Names and numbers looked up'),
      })
      .meta({ description: 'Usage today, in the time zone of the workspace.' }),
    sends_wait_until: momentOrNull('When the platform’s wait for sends ends; null: there is none.'),
    lookups_wait_until: momentOrNull('The same for look-ups.'),
    reading_waits_until: momentOrNull('The same for reading.'),
    first_messages_stopped_at: momentOrNull(
      'When the platform began to refuse its first messages; null: it does not refuse them.',
    ),
    campaigns_held_at: momentOrNull(
      'When its campaign messages began to hold, because sends kept ending with an unknown error; null: they do not hold.',
    ),
    cold_per_day: countOrNull('Daily limit of first messages that a person has set; null: none.'),
    proxy: textOrNull('Its proxy without credentials, such as socks5://proxy.example.com:1080; null: none.'),
    sent_per_day: z
      .array(z.int())
      .meta({ description: 'Messages sent on each of the last 30 days; today is the last.' }),
    strikes: z
      .array(
        z.object({
          kind: said('What the platform did, such as flood_wait.'),
          at: moment('When.'),
          seconds: countOrNull('How long it had to wait; null: no wait.'),
        }),
      )
      .meta({
        description: 'Restrictions by the platform in the last 30 days, newest first, at most 20.',
      }),
    waiting: z
      .array(
        z.object({
          campaign_id: uuid('Id of the campaign.'),
          name: textOrNull('Name of the campaign; null: none.'),
          recipients: count('Recipients that are waiting for this account.'),
        }),
      )
      .meta({ description: 'Campaigns with recipients that are waiting for it.' }),
  })
  .meta({ id: 'DashboardAccount', description: 'A messaging account of the workspace.' })
