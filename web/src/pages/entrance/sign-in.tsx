/** Sign in with a password or, if this instance has one, with the identity provider. */

import { useMutation, useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ask } from '../../data/api.ts'
import { keys } from '../../data/keys.ts'
import { onOpenedElsewhere } from '../../data/live/live.ts'
import { safeReturn } from '../../data/place.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Form, TextField } from '../../ui/form.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Entrance, Or } from './entrance.tsx'
import { endedWords, isEnded } from './session-ended.ts'

export interface SignInSearch {
  return_to?: string
  refused?: string
  /** A session has ended on this page: one of `endedWords`. */
  ended?: string
}

export function SignInPage() {
  const { return_to, refused, ended } = useSearch({ from: '/sign-in' })
  const to = safeReturn(return_to)
  const ways = useQuery({ queryKey: keys.ways(), queryFn: () => ask('GET /sign-in') })
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => ask('POST /sign-in', { body: { email, password } }),
    // Load a whole new page: it drops what another user may have read here before.
    onSuccess: () => location.assign(to),
  })
  // The user has signed in in another tab: this one goes back to its page as well.
  useEffect(
    () =>
      onOpenedElsewhere(() => {
        const stay = () => {}
        ask('GET /session').then(() => location.assign(to), stay)
      }),
    [to],
  )
  return (
    <Entrance title="Sign in to Parley">
      {refused !== undefined && (
        <div className="mb-5">
          <Notice tone="danger">
            {refusalWords(refused, ways.data?.oidc?.label ?? 'the identity provider')}
          </Notice>
        </div>
      )}
      {isEnded(ended) && (
        <div className="mb-5">
          <Notice tone="info">Your session ended. {endedWords[ended]}</Notice>
        </div>
      )}
      {ways.data?.oidc && (
        <>
          <a
            href={`/dashboard/oidc/start?return_to=${encodeURIComponent(to)}`}
            className={`${buttonClass({ size: 'large' })} w-full`}
          >
            Continue with {ways.data.oidc.label}
          </a>
          <Or />
        </>
      )}
      <Failure error={ways.error} />
      <Form
        onSubmit={() => signIn.mutate()}
        change={{ isPending: signIn.isPending || signIn.isSuccess, error: signIn.error }}
        action="Sign in"
        wide
      >
        <TextField
          label="E-mail"
          type="email"
          name="email"
          autoComplete="username"
          required
          value={email}
          onChange={setEmail}
        />
        <TextField
          label="Password"
          type="password"
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={setPassword}
        />
      </Form>
      <p className="mt-6 text-xs text-muted">Forgot your password? Ask the operator for a new set-up link.</p>
    </Entrance>
  )
}

/** Why the identity provider's answer did not sign the user in. */
function refusalWords(reason: string, label: string): string {
  switch (reason) {
    case 'unknown':
      return `No user of this instance is linked to this ${label} account yet. Ask an admin of your workspace for a set-up link.`
    case 'link':
      return 'This set-up link has been used or has expired. Ask for a new one.'
    case 'taken':
      return `This ${label} account is linked to another user of this instance.`
    case 'unavailable':
      return `${label} does not respond. Sign in with e-mail and password, or try again later.`
    case 'disabled':
      return 'This user is disabled. Ask an operator of this instance.'
    default:
      return `Signing in with ${label} failed. Please try again.`
  }
}
