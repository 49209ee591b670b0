/** The texts of the document that no route provides. */
import { exampleAccountId } from '../lib/examples.ts'
import { depthMax, itemsMax, namesMax, propertiesMax, valuesMax } from '../lib/text.ts'

const bodyLimits = [
  '1 MiB',
  `${depthMax} levels`,
  `${propertiesMax} properties in an object and ${itemsMax.toLocaleString('en')} items in an array`,
  `${valuesMax.toLocaleString('en')} values and ${namesMax.toLocaleString('en')} different property names in all`,
].join(', ')

/** The address of Parley in the examples. The page at /docs replaces it with its own. */
export const documentedOrigin = 'http://127.0.0.1:8080'

/** Short lines: the page shows them in a narrow column. */
const bearer = '-H "Authorization: Bearer $KEY"'

const quickstart = `## Quickstart

1. **Get a key.** The first start of Parley prints one for its demo; \`parley key create\` creates others. Every request
   carries a key, which belongs to one workspace. To try operations on this page, enter it under Authentication; the page
   keeps it for this tab only.

   \`\`\`sh
   export PARLEY=${documentedOrigin}
   export KEY=svc_live_…
   \`\`\`

2. **Check the key:** its workspace, the accounts it can use and what it can do.

   \`\`\`sh
   curl -s $PARLEY/api/v1/me \\
     ${bearer}
   \`\`\`

3. **Read.** The examples use an account of the demo; on another instance use one from \`/me\`.

   \`\`\`sh
   export ACCOUNT=${exampleAccountId}
   curl -s -G $PARLEY/api/v1/chats \\
     -d account_id=$ACCOUNT \\
     ${bearer}
   \`\`\`

4. **Send.** The \`Idempotency-Key\` identifies this one message: repeating the request does not send it twice.

   \`\`\`sh
   curl -s $PARLEY/api/v1/messages \\
     ${bearer} \\
     -H 'Content-Type: application/json' \\
     -H 'Idempotency-Key: first-1' \\
     -d '{"account_id": "'$ACCOUNT'",
       "chat_id": "platform:chat:42",
       "text": "Hello!"}'
   \`\`\`

5. **Follow events.** To continue, repeat the request with the last \`sequence\` as \`after\`.

   \`\`\`sh
   curl -s $PARLEY/api/v1/events \\
     ${bearer}
   \`\`\``

export const introduction = `${quickstart}

## Conventions

Every request carries \`Authorization: Bearer svc_live_…\`. A key belongs to one workspace and has scopes.

**Errors** are \`{"error": "<a sentence>", "code": "<stable>"}\` with the statuses that each operation lists.

**Rate limit.** A key can make 120 requests in any 60 seconds. \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` are on every
response; \`Retry-After\` of a 429 gives the seconds to wait.

**Idempotency.** Repeating a request with the same \`Idempotency-Key\` returns the first result
(\`Idempotent-Replayed: true\`) and executes nothing. The same key with another payload is refused.

**Pagination.** Every list takes \`cursor\` and \`limit\` and returns \`next_cursor\` and \`has_more\`: pass \`next_cursor\` as
\`cursor\` with all other parameters unchanged, until it is null. Messages are paged backwards in time, so there they are
called \`before\` and \`next_before\`.

**JSON bodies** can have at most ${bodyLimits}.

**Times** are RFC 3339 in UTC. A time without an offset is read as UTC, except \`scheduled_at\`, which is read in
\`schedule_timezone\`.

**Compatibility.** Parley refuses unknown properties and query parameters and names them. Responses may get new
properties.`

/** The text above the operations of each heading. */
export const headings: Readonly<Record<string, string>> = {
  Me: 'The current key and what it can do.',
  Chats: 'The chats of the accounts: list, read, start and mark them.',
  Messages: 'Sending messages, never twice.',
  Contacts: 'The contacts of the accounts.',
  People: 'What is stored about one person.',
  Search: 'Searching stored messages.',
  Pipeline: 'The stages that chats move through.',
  Columns: 'The custom columns of a workspace and their values.',
  Analytics: 'Counts of messages and campaign results.',
  Events: 'The events of the workspace, in order.',
  Campaigns: 'Messages to many people, with follow-ups and quotas.',
  Broadcast: 'One message to everyone in a stage or with a column value.',
  Webhooks: 'Delivery of events to your endpoints.',
  Operations: 'The ledger: the outcome of each request.',
}
