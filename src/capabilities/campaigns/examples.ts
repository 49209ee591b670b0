/** Examples for the API reference. */

const account_id = 'acc_2Jk9vQ7wXb4LmN8pRt3Z'
const chat_id = 'platform:chat:42'

const campaign = {
  id: '019a7e70-0000-7000-8000-0000000000c1',
  name: 'Autumn offer',
  status: 'queued',
  kind: 'scoped',
  message_text: 'Hello [[name|there]], the blue one is back in stock.',
  branching_enabled: false,
  daily_quota_per_account: 30,
  max_followups: 2,
  scheduled_at: null,
  schedule_timezone: 'UTC',
  created_at: '2026-11-15T09:30:00.000Z',
  started_at: null,
  completed_at: null,
  cancelled_at: null,
  pause_reason: null,
  totals: {
    queued: 1,
    submitting: 0,
    waiting: 0,
    completed: 0,
    replied: 0,
    failed: 0,
    ambiguous: 0,
    cancelled: 0,
    suppressed: 0,
  },
}

const {
  message_text: _,
  branching_enabled: __,
  daily_quota_per_account: ___,
  max_followups: ____,
  schedule_timezone: _____,
  ...progress
} = campaign

const steps = [{ branch: 'no_reply', wait_hours: 48, variants: ['Shall I put one aside for you?'] }]

const body = {
  name: 'Autumn offer',
  message_text: 'Hello [[name|there]], the blue one is back in stock.',
  recipients: [{ account_id, chat_id }],
  steps,
}

export const example = {
  campaign,
  progress,
  body,
  created: { campaign, queued: true, warnings: [] },
  page: {
    campaigns: [campaign],
    coverage: {
      scope: 'internal',
      legacy_excluded: true,
      limitations: [
        'Only campaigns that were created here are listed; legacy campaigns and broadcasts are not.',
      ],
    },
    next_cursor: null,
    has_more: false,
  },
  forecast: {
    creatable: true,
    warnings: [],
    excluded: [],
    texts: [
      {
        account_id,
        chat_id,
        identifier: null,
        messages: [
          { step: 0, branch: null, variants: ['Hello Ines García, the blue one is back in stock.'] },
          { step: 1, branch: 'no_reply', variants: ['Shall I put one aside for you?'] },
        ],
      },
    ],
    timetable: [
      {
        account_id,
        chat_id,
        identifier: null,
        messages: [
          { step: 0, branch: null, account_id, at: '2026-11-15T09:30:15.000Z' },
          { step: 1, branch: 'no_reply', account_id, at: '2026-11-17T09:30:15.000Z' },
        ],
      },
    ],
    load: [
      { account_id, day: '2026-11-15', messages: 1, total: 1 },
      { account_id, day: '2026-11-17', messages: 1, total: 1 },
    ],
    end: '2026-11-17T09:30:15.000Z',
    next_cursor: null,
    has_more: false,
  },
  detail: {
    campaign: {
      ...campaign,
      recipients: [
        {
          id: '5b0a1c6e-2f37-8d52-9a41-7c30f1b2d4e5',
          account_id,
          chat_id,
          identifier: null,
          name: 'Ines García',
          status: 'queued',
          reason: null,
          step: 0,
          next_action_at: '2026-11-15T09:30:15.000Z',
          blocked_by: 'pacing',
          timeline: [],
        },
      ],
      steps,
      operations: [],
      reporting: [
        { step: 0, branch: null, variant: 0, sent: 0, failed: 0, ambiguous: 0, replies: 0, opted_out: 0 },
        {
          step: 1,
          branch: 'no_reply',
          variant: 0,
          sent: 0,
          failed: 0,
          ambiguous: 0,
          replies: 0,
          opted_out: 0,
        },
      ],
      can: { create: true, cancel: true, pause: true, resume: false },
    },
    next_cursor: null,
    has_more: false,
  },
}
