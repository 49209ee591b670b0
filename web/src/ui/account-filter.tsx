/** Of which account: a choice in the bar of a page. Shown once there are two. */
import { useQuery } from '@tanstack/react-query'
import { accountsQuery } from '../data/accounts.ts'
import { Select } from './select.tsx'

interface AccountFilterProps {
  workspace_id: string
  value: string | undefined
  /** Undefined: all. */
  onChange: (account_id: string | undefined) => void
  className?: string
}

export function AccountFilter({ workspace_id, value = '', onChange, className = '' }: AccountFilterProps) {
  const { data } = useQuery(accountsQuery(workspace_id))
  if (!data || data.accounts.length < 2) return null
  return (
    <Select
      look="bar"
      aria-label="Account"
      value={value}
      options={[['', 'All accounts'], ...data.accounts.map(({ id, name }) => [id, name] as const)]}
      onChange={(id) => onChange(id || undefined)}
      className={className}
    />
  )
}
