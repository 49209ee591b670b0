/** The texts of the document that no route provides. */
import { exampleAccountId } from '../lib/examples.ts'
import { depthMax, itemsMax, propertiesMax } from '../lib/text.ts'

const bodyLimits = [
  '1 MiB',
  `${depthMax} levels`,
  `${propertiesMax} properties in an object and ${itemsMax.toLocaleString('en')} items in an array`,
].join(', ')

/** The address of Parley in the examples. The page at /docs replaces it with its own. */
export const documentedOrigin = 'http://127.0.0.1:8080'

/** Short lines: the page shows them in a narrow column. */
const bearer = '-H "Authorization: Bearer $KEY"'

const quickstart = `## Quickstart

1. **Have a key.** The first start of Parley prints one for its demo; \`parley key create\` makes others. Every request
   carries it, and it belongs to one workspace. To try operations on this page, put it under Authentication: it is kept for
   this tab only.

   \`\`\`sh
   export PARLEY=${documentedOrigin}
   export KEY=svc_live_…
   \`\`\`

2. **Ask who it is,** which accounts it can use and what it may do.

   \`\`\`sh
   curl -s $PARLEY/api/v1/me \\
     ${bearer}
   \`\`\`

3. **Read.** The account of the examples is the demo's own; elsewhere take one that \`/me\` names.

   \`\`\`sh
   export ACCOUNT=${exampleAccountId}
   curl -s -G $PARLEY/api/v1/chats \\
     -d account_id=$ACCOUNT \\
     ${bearer}
   \`\`\`

4. **Send.** The \`Idempotency-Key\` stands for this one message: send the same request again and nobody gets it twice.

   \`\`\`sh
   curl -s $PARLEY/api/v1/messages \\
     ${bearer} \\
     -H 'Content-Type: application/json' \\
     -H 'Idempotency-Key: first-1' \\
     -d '{"account_id": "'$ACCOUNT'",
       "chat_id": "platform:chat:42",
       "text": "Hello!"}'
   \`\`\`

5. **Follow** what comes in. To go on from there, ask again with the last \`sequence\` as \`after\`.

   \`\`\`sh
   curl -s $PARLEY/api/v1/events \\
     ${bearer}
   \`\`\``

export const introduction = `${quickstart}

## What holds everywhere

Every request carries \`Authorization: Bearer svc_live_…\`. A key belongs to one workspace and has scopes.

**Failures** are \`{"error": "<a sentence>", "code": "<stable>"}\` with the status that each operation lists.

**Rates.** A key may make 120 requests in any 60 seconds. \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` are on every
response; a 429 says in \`Retry-After\` how many seconds to wait.

**Repeats.** Where \`Idempotency-Key\` is taken, a repeat of the same request is answered with what the first one came to
(\`Idempotent-Replayed: true\`) and never executed again. The same key with another payload is refused.

**Pages.** Every list takes \`cursor\` and \`limit\` and ends with \`next_cursor\` and \`has_more\`: give \`next_cursor\` back as
\`cursor\`, with everything else as it was, until it is null. The messages of a chat go back in time, so theirs are
called \`before\` and \`next_before\`.

**Bodies** of JSON have at most ${bodyLimits}.

**Times** are RFC 3339 in UTC. A time that you give without an offset is UTC, except \`scheduled_at\`, which is a time of
\`schedule_timezone\`. An unknown property or query parameter is refused and named; answers may get new properties.`

/** The text above the operations of each heading. */
export const headings: Readonly<Record<string, string>> = {
  Me: 'Who a key is and what it may do.',
  Chats: 'The conversations of the accounts: listed, read, opened, marked.',
  Messages: 'Sending, once and never twice.',
  Contacts: 'The people whom the accounts know.',
  Search: 'Finding messages that are stored.',
  Pipeline: 'The stages that chats move through.',
  Columns: 'What a workspace notes about its chats.',
  Analytics: 'Counts of what happened.',
  Events: 'What happened, in order, for programs that follow.',
  Campaigns: 'Messages to many, with follow-ups, within quotas.',
  Broadcast: 'One message to everybody in a stage or with a column value.',
  Webhooks: 'Events, delivered.',
  Operations: 'The ledger: what became of a request.',
}
