/** A set-up link opens it, to choose a password or link the identity provider. No server sees the fragment with the token. */

import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { passwordMax, passwordMin } from '../../../../src/rules/limits.ts'
import { ask, Refused } from '../../data/api.ts'
import { keys } from '../../data/keys.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Form, TextField } from '../../ui/form.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { Entrance, Or } from './entrance.tsx'

export function SetupPage() {
  const [token] = useState(() => location.hash.slice(1))
  const look = useQuery({
    queryKey: keys.setup(token),
    queryFn: () => ask('POST /setup/look', { body: { token } }),
    enabled: token !== '',
    retry: false,
    refetchOnWindowFocus: false,
  })
  const gone = token === '' || (look.error instanceof Refused && look.error.status === 404)
  if (gone) return <Gone />
  return (
    <Entrance
      title="Set up your account"
      about={look.data ? `You will sign in as ${look.data.email}.` : 'Checking the link…'}
    >
      {look.isPending && <Loading rows={2} />}
      <Failure error={look.error} />
      {look.data && <Choose token={token} {...look.data} />}
    </Entrance>
  )
}

function Gone() {
  return (
    <Entrance
      title="This link no longer works"
      about="Set-up links work once, for seven days. Ask for a new one."
    >
      <div className="grid gap-5">
        <Notice tone="info">
          Ask the person who sent it, or an operator of this instance, for a new one.
        </Notice>
        <Link to="/sign-in" className={`${buttonClass()} w-full`}>
          Sign in instead
        </Link>
      </div>
    </Entrance>
  )
}

interface ChooseProps {
  token: string
  email: string
  expires_at: string
  oidc: { label: string } | null
}

function Choose({ token, email, expires_at, oidc }: ChooseProps) {
  const [password, setPassword] = useState('')
  const setUp = useMutation({
    mutationFn: () => ask('POST /setup', { body: { token, password } }),
    onSuccess: () => location.replace('/dashboard/'),
  })
  const link = useMutation({
    mutationFn: () => ask('POST /setup/oidc', { body: { token } }),
    onSuccess: ({ location: to }) => location.assign(to),
  })
  return (
    <>
      {oidc && (
        <>
          <button
            type="button"
            onClick={() => link.mutate()}
            className={`${buttonClass({ size: 'large' })} w-full`}
          >
            Continue with {oidc.label}
          </button>
          <Failure error={link.error} />
          <Or />
        </>
      )}
      <Form
        onSubmit={() => setUp.mutate()}
        change={{ isPending: setUp.isPending || setUp.isSuccess, error: setUp.error }}
        action="Create account"
        wide
      >
        <input type="email" name="email" autoComplete="username" value={email} readOnly hidden />
        <TextField
          label="Password"
          help={`At least ${passwordMin} characters. A sentence is easiest to remember.`}
          type="password"
          name="password"
          autoComplete="new-password"
          required
          minLength={passwordMin}
          maxLength={passwordMax}
          value={password}
          onChange={setPassword}
        />
      </Form>
      <p className="mt-6 text-xs text-muted">
        This link stops working <Time at={expires_at} ahead />.
      </p>
    </>
  )
}
