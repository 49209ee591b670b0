/** To the page where an account is connected or logged in: within a sentence, or as a button. */
import { Link } from '@tanstack/react-router'
import { buttonClass } from './button.tsx'

interface AccountsLinkProps {
  workspace_id: string
  button?: boolean
}

export function AccountsLink({ workspace_id, button = false }: AccountsLinkProps) {
  return (
    <Link
      to="/w/$workspace_id/accounts"
      params={{ workspace_id }}
      className={
        button
          ? buttonClass({ kind: 'primary' })
          : 'whitespace-nowrap underline decoration-line-strong underline-offset-3'
      }
    >
      Go to Accounts
    </Link>
  )
}
