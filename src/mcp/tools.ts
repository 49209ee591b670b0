/** The eight tools of the contract: which route each one calls, and how agents see it. */
import type { Tool as Listed, ToolAnnotations } from '@modelcontextprotocol/server'
import { approvable } from '../capabilities/approvals/approvals.ts'
import type { Route } from '../route.ts'
import { inputSchemaOf, numbersOf, outputSchemaOf } from './tool-schemas.ts'

export interface Tool {
  readonly name: string
  readonly route: Route
  /** Whether a person has to approve each call. */
  readonly approved: boolean
  /** Arguments that are numbers for agents and text in a query string. */
  readonly numbers: ReadonlySet<string>
  /** The default page size; undefined if there are no pages. */
  readonly page_size: number | undefined
  /** The route whose list of the workspace's choices the description shows. */
  readonly choices: Route | undefined
  /** The entry of `tools/list`. */
  readonly listed: Listed
}

interface Words {
  readonly route: string
  readonly title: string
  readonly description: string
  readonly annotations: ToolAnnotations
  /** The route whose list the description contains, because no tool calls it. */
  readonly choices?: string
}

const reading: ToolAnnotations = { readOnlyHint: true }

const approval =
  'Needs the approval of a person: a call without `approval_token` changes nothing and returns `approval_required` ' +
  'with an `approval_url`. Stop, give that address to your user, and call again with exactly the same arguments ' +
  'and the token they got there.'

const words: Readonly<Record<string, Words>> = {
  service_whoami: {
    route: 'get_me',
    title: 'Who am I',
    description:
      'Returns the workspace and scopes of this key, the accounts it can use with their `account_id`, and what it can do now.',
    annotations: reading,
  },
  service_list_chats: {
    route: 'list_chats',
    title: 'List chats',
    description: 'Lists the chats of an account, newest first, in pages. Filters by stage or column value.',
    annotations: reading,
  },
  service_get_chat: {
    route: 'get_chat',
    title: 'Get a chat',
    description: 'Returns one chat with its participants, stage and column values.',
    annotations: reading,
  },
  service_get_messages: {
    route: 'list_messages',
    title: 'Get messages',
    description:
      'Lists the messages of one chat, newest page first, oldest first within a page. Marks nothing as read.',
    annotations: reading,
  },
  service_search_messages: {
    route: 'search_messages',
    title: 'Search messages',
    description:
      'Searches the stored messages by words, people and time, newest first. `completeness` says what may be missing.',
    annotations: reading,
  },
  service_send_message: {
    route: 'send_message',
    title: 'Send a message',
    description: `Sends one text to an existing chat. A sent message cannot be recalled. ${approval}`,
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  },
  service_move_pipeline_stage: {
    route: 'move_chat',
    title: 'Move a chat to a stage',
    description: `Moves a chat to a stage of the pipeline. ${approval}`,
    annotations: { readOnlyHint: false, idempotentHint: true },
    choices: 'get_pipeline',
  },
  service_set_column: {
    route: 'set_column',
    title: 'Set a column value',
    description: `Sets or clears the value of a chat in a column. ${approval}`,
    annotations: { readOnlyHint: false, idempotentHint: true },
    choices: 'get_columns',
  },
}

/** All eight, in the contract's order. */
export function makeTools(routes: readonly Route[]): ReadonlyMap<string, Tool> {
  const tools = Object.entries(words).map(([name, given]): [string, Tool] => {
    const find = (wanted: string): Route => {
      const route = routes.find((each) => each.name === wanted)
      if (!route) throw new Error(`The route ${wanted} of the tool ${name} is not listed.`)
      return route
    }
    const choices = given.choices === undefined ? undefined : find(given.choices)
    return [name, { ...makeTool(name, find(given.route), given), choices }]
  })
  const rename = namesInWords(tools.map(([, tool]) => tool))
  return new Map(tools.map(([name, tool]) => [name, { ...tool, listed: rename(tool.listed) }]))
}

function makeTool(
  name: string,
  route: Route,
  { title, description, annotations }: Words,
): Omit<Tool, 'choices'> {
  const approved = approvable[route.name]?.tool === name
  const inputSchema = inputSchemaOf(route, { approved })
  return {
    name,
    route,
    approved,
    numbers: numbersOf(route),
    page_size: pageSizeOf(inputSchema.properties.limit),
    listed: {
      name,
      title,
      description,
      inputSchema,
      outputSchema: outputSchemaOf(route, { approved }),
      annotations: { title, ...annotations },
    },
  }
}

/** Where a description names a route that a tool calls or lists, such as `GET /me`, names the tool instead. */
function namesInWords(tools: readonly Tool[]): (listed: Listed) => Listed {
  const known = tools.flatMap(({ name, route, choices }) =>
    [route, ...(choices ? [choices] : [])].map(({ method, path }) => [
      `\`${method} ${path}\``,
      `\`${name}\``,
    ]),
  )
  return (listed) => {
    const text = known.reduce(
      (words, [route = '', tool = '']) => words.replaceAll(route, tool),
      JSON.stringify(listed),
    )
    return JSON.parse(text)
  }
}

function pageSizeOf(limit: { readonly default?: unknown } | undefined): number | undefined {
  return limit && Number(limit.default)
}
