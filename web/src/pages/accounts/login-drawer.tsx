/** Logs an account in: by a QR code or a phone number, then the code and the two-step password if they are asked for. */
import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { type Account, type Login, loginQuery } from '../../data/accounts.ts'
import { useChange } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { type Change, Form, TextField } from '../../ui/form.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Loading } from '../../ui/states.tsx'
import { Countdown, useHasCome } from '../../ui/time.tsx'
import { QrCode } from './qr-code.tsx'

interface DrawerProps {
  account: Account
  workspace_id: string
  onClose: () => void
}

export function LoginDrawer({ account, workspace_id, onClose }: DrawerProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <aside
      aria-label={`Log in ${account.name}`}
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
      className="fixed inset-0 z-20 overflow-y-auto border-l border-line bg-surface lg:sticky lg:inset-auto lg:top-0 lg:h-dvh lg:w-93 lg:shrink-0"
    >
      <header className="flex min-h-[53px] items-center gap-2 border-b border-line py-2 pl-5 pr-2.5">
        <h2
          ref={heading}
          tabIndex={-1}
          className="flex min-w-0 flex-1 gap-1.25 text-lg font-semibold whitespace-nowrap outline-none"
        >
          Log in <ExactLine text={account.name} cut />
        </h2>
        <IconButton label="Close" onClick={onClose}>
          <X aria-hidden className="size-4" />
        </IconButton>
      </header>
      <div className="grid gap-4 p-5">
        <Steps account={account} workspace_id={workspace_id} onClose={onClose} />
      </div>
    </aside>
  )
}

const isOver = ({ state }: Login) => state === 'done' || state === 'failed'

/** A new account is CONNECTING too, until a worker finds that it has no session. It has no user of the platform yet. */
function isLoggedIn({ status, platform_user }: Account, login: Login | null): boolean {
  if (status !== 'CONNECTING' && status !== 'READY') return false
  return platform_user !== null || login?.state === 'done'
}

function Steps({ account, workspace_id, onClose }: DrawerProps) {
  const params = { workspace_id, account_id: account.id }
  const { data, error } = useQuery(loginQuery(workspace_id, account.id))
  const begin = useChange('POST /w/{workspace_id}/accounts/{account_id}/login', ['accounts'])
  const giveUp = useChange('DELETE /w/{workspace_id}/accounts/{account_id}/login', ['accounts'])
  if (data === undefined) return error ? <Failure error={error} /> : <Loading />
  const { login } = data
  if (!login || isOver(login)) {
    if (isLoggedIn(account, login)) return <Done account={account} onClose={onClose} />
    return (
      <>
        {login?.failure && <Notice tone="danger">{login.failure.error}</Notice>}
        <Begin
          begin={begin}
          onBegin={(phone) => begin.mutate({ params, body: phone === null ? {} : { phone } })}
        />
      </>
    )
  }
  return (
    <>
      <Progress step={login.state === 'password' ? 2 : 1} />
      <Failure error={error} />
      <Question login={login} params={params} />
      <Failure error={giveUp.error} />
      <Button busy={giveUp.isPending} onClick={() => giveUp.mutate({ params })}>
        Cancel this login
      </Button>
      <p className="text-xs text-muted">
        Expires in <Countdown until={login.expires_at} label="Time left for this login" />. The session is
        encrypted and used only with Telegram, where it shows up as “Parley”. You can end it there at any
        time.
      </p>
    </>
  )
}

/** The code, then the password. */
function Progress({ step }: { step: 1 | 2 }) {
  return (
    <div role="img" aria-label={`Step ${step} of 2`} className="flex gap-1.5">
      {[1, 2].map((each) => (
        <span
          key={each}
          className={`h-0.75 flex-1 rounded-full ${each <= step ? 'bg-accent' : 'bg-chart-rest'}`}
        />
      ))}
    </div>
  )
}

function Question({ login, params }: { login: Login; params: { workspace_id: string; account_id: string } }) {
  if (login.state === 'qr') return <Scan login={login} />
  if (login.state !== 'code' && login.state !== 'password') return null
  if (login.pending) return <Waiting>{login.state === 'code' ? 'Asking Telegram…' : 'Checking…'}</Waiting>
  return (
    <Answer key={`${login.state} ${login.tries_left}`} login={login} kind={login.state} params={params} />
  )
}

function Waiting({ children }: { children: ReactNode }) {
  return (
    <p role="status" className="text-muted">
      {children}
    </p>
  )
}

function Scan({ login }: { login: Login }) {
  return (
    <>
      {login.qr_url === null ? (
        <div className="mx-auto grid size-58 place-items-center rounded-2xl ring-1 ring-line">
          <Waiting>Asking for a code…</Waiting>
        </div>
      ) : (
        <QrCode text={login.qr_url} />
      )}
      {login.qr_expires_at !== null && (
        <p className="text-center text-xs text-muted">
          A new code in <Countdown calm until={login.qr_expires_at} label="Time until a new code" />
        </p>
      )}
      <ol className="grid gap-2">
        <HowTo n={1}>On the phone of this account open Telegram.</HowTo>
        <HowTo n={2}>Settings, Devices, Link Desktop Device.</HowTo>
        <HowTo n={3}>
          Point the camera at the code. If the account has a two-step password, you enter it next.
        </HowTo>
      </ol>
    </>
  )
}

function HowTo({ n, children }: { n: number; children: ReactNode }) {
  return (
    <li className="grid grid-cols-[22px_1fr] gap-2.5">
      <span
        aria-hidden
        className="grid size-5.5 place-items-center rounded-full bg-hover text-xs font-semibold text-soft"
      >
        {n}
      </span>
      {children}
    </li>
  )
}

const sentBy: Readonly<Record<string, string>> = {
  app: 'Telegram sent a code to the other devices of this account.',
  sms: 'Telegram sent a code by SMS.',
  word: 'Telegram sent a word by SMS.',
  phrase: 'Telegram sent a phrase by SMS. Type all of it.',
  call: 'Telegram is calling this number to say the code.',
  missed_call: 'Telegram is calling this number. The code is the last digits of the number that calls.',
  email: 'Telegram sent a code to the e-mail address of this account.',
  fragment: 'The code is at Fragment, where the number was bought.',
}

const againBy: Readonly<Record<string, string>> = {
  app: 'Send it to the app',
  sms: 'Send it by SMS',
  call: 'Have Telegram call',
  missed_call: 'Send it by a missed call',
  email: 'Send it by e-mail',
  fragment: 'Send it to Fragment',
}

interface AnswerProps {
  login: Login
  kind: 'code' | 'password'
  params: { workspace_id: string; account_id: string }
}

function Answer({ login, kind, params }: AnswerProps) {
  const [text, setText] = useState('')
  const answer = useChange('POST /w/{workspace_id}/accounts/{account_id}/login/answer', ['accounts'])
  const label = kind === 'code' ? 'Code' : 'Two-step password'
  const isWords = login.sent_by === 'word' || login.sent_by === 'phrase'
  const again = kind === 'code' ? login.again : null
  const help =
    kind === 'code'
      ? [sentBy[login.sent_by ?? ''] ?? 'Telegram sent a code to this account.', login.place]
          .filter(Boolean)
          .join(' ')
      : login.hint && `Hint: ${login.hint}`
  return (
    <Form
      onSubmit={() => answer.mutate({ params, body: { kind, text: text.trim() } })}
      change={answer}
      action="Continue"
      disabled={text.trim() === ''}
      wide
    >
      {login.wrong && (
        <Notice tone="danger">
          {kind === 'code' ? 'This code is wrong.' : 'This password is wrong.'}
          {login.tries_left !== null &&
            ` ${login.tries_left} ${login.tries_left === 1 ? 'attempt' : 'attempts'} left.`}
        </Notice>
      )}
      <TextField
        label={label}
        help={help}
        autoFocus
        type={kind === 'code' ? 'text' : 'password'}
        inputMode={kind === 'code' && !isWords ? 'numeric' : 'text'}
        value={text}
        onChange={setText}
        autoComplete={kind === 'code' ? 'one-time-code' : 'off'}
        spellCheck={false}
      />
      {again !== null && (
        <SendAgain
          again={again}
          busy={answer.isPending}
          onSend={() => answer.mutate({ params, body: { kind: 'again' } })}
        />
      )}
    </Form>
  )
}

interface SendAgainProps {
  again: NonNullable<Login['again']>
  busy: boolean
  onSend: () => void
}

/** Telegram says when it may be asked: before that, the same question would only come back. */
function SendAgain({ again, busy, onSend }: SendAgainProps) {
  const isAllowed = useHasCome(again.at)
  return (
    <>
      <Button busy={busy} disabled={!isAllowed} onClick={onSend}>
        {againBy[again.by] ?? 'Send it another way'}
      </Button>
      {!isAllowed && (
        <p className="text-center text-xs text-muted">
          In <Countdown calm until={again.at} label="Time until it can be sent again" />, if no code comes
        </p>
      )}
    </>
  )
}

interface BeginProps {
  begin: Change
  onBegin: (phone: string | null) => void
}

/** A login starts only on a click: Telegram counts every attempt against the number. */
function Begin({ begin, onBegin }: BeginProps) {
  const [byPhone, setByPhone] = useState(false)
  const [phone, setPhone] = useState('')
  if (!byPhone) {
    return (
      <>
        <Failure error={begin.error} />
        <Button kind="primary" busy={begin.isPending} onClick={() => onBegin(null)}>
          Show a QR code
        </Button>
        <Button onClick={() => setByPhone(true)}>Use a phone number instead</Button>
      </>
    )
  }
  return (
    <>
      <Form
        onSubmit={() => onBegin(phone.replaceAll(/[\s()-]/g, ''))}
        change={begin}
        action="Send a code"
        disabled={phone.trim() === ''}
        wide
      >
        <TextField
          label="Phone number"
          help="International, for example +43 660 1234567"
          autoFocus
          type="tel"
          value={phone}
          onChange={setPhone}
        />
      </Form>
      <Button onClick={() => setByPhone(false)}>Use a QR code instead</Button>
    </>
  )
}

function Done({ account, onClose }: Omit<DrawerProps, 'workspace_id'>) {
  const name = account.platform_user?.username
  return (
    <>
      <Notice tone="good">
        {name ? `Logged in as @${name}.` : 'Logged in.'} Chats appear as they are synced.
      </Notice>
      <Button kind="primary" onClick={onClose}>
        Close
      </Button>
    </>
  )
}
