/** What the page "Accounts" reads. */

import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type Accounts = Answer<'GET /w/{workspace_id}/accounts'>
export type Account = Accounts['accounts'][number]
export type Login = NonNullable<Answer<'GET /w/{workspace_id}/accounts/{account_id}/login'>['login']>

export const accountsQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.accounts(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/accounts', { params: { workspace_id } }),
  })

export const loginQuery = (workspace_id: string, account_id: string) =>
  queryOptions({
    queryKey: keys.accounts(workspace_id, 'login', account_id),
    queryFn: () =>
      ask('GET /w/{workspace_id}/accounts/{account_id}/login', { params: { workspace_id, account_id } }),
  })

const platformNames: Readonly<Record<string, string>> = { telegram: 'Telegram', sandbox: 'Sandbox' }

export function platformName(platform: string): string {
  return platformNames[platform] ?? platform
}
