/** Dialogs of the page "Accounts": connect, edit, log out. */
import { useState } from 'react'
import { coldMax, nameMax } from '../../../../src/rules/limits.ts'
import { type Account, platformName } from '../../data/accounts.ts'
import { useChange } from '../../data/queries.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Form, SelectField, TextField } from '../../ui/form.tsx'

export type OpenDialog = { what: 'connect' } | { what: 'edit' | 'logout'; account: Account }

interface DialogsProps {
  open: OpenDialog | undefined
  /** Those that workers can drive. */
  platforms: readonly string[]
  workspace_id: string
  onClose: () => void
  onCreated: (account_id: string) => void
}

export function AccountDialogs({ open, platforms, workspace_id, onClose, onCreated }: DialogsProps) {
  const edited = open?.what === 'edit' ? open.account : undefined
  const leaving = open?.what === 'logout' ? open.account : undefined
  return (
    <>
      <Dialog
        open={open?.what === 'connect'}
        onClose={onClose}
        title="Connect an account"
        description="Next you log it in with its phone."
      >
        <ConnectForm {...{ platforms, workspace_id, onClose, onCreated }} />
      </Dialog>
      <Dialog open={edited !== undefined} onClose={onClose} title={`Edit ${edited?.name ?? ''}`}>
        {edited && <EditForm account={edited} workspace_id={workspace_id} onClose={onClose} />}
      </Dialog>
      <LogOut account={leaving} workspace_id={workspace_id} onClose={onClose} />
    </>
  )
}

interface InputProps {
  value: string
  onChange: (value: string) => void
}

function NameField({ value, onChange }: InputProps) {
  return (
    <TextField
      label="Name"
      help="For example: Sales"
      required
      maxLength={nameMax}
      value={value}
      onChange={onChange}
    />
  )
}

/** The child explains what saving does. */
function ProxyField({ value, onChange, children }: InputProps & { children: string }) {
  const help = `socks5://user:password@host:1080, or the same with http or https. Every connection goes through it. ${children}`
  return (
    <TextField label="Proxy (optional)" help={help} value={value} onChange={onChange} spellCheck={false} />
  )
}

function ConnectForm(props: Omit<DialogsProps, 'open'>) {
  const { platforms, workspace_id, onClose, onCreated } = props
  const offered = platforms
    .filter((each) => each === 'telegram' || each === 'sandbox')
    .toSorted()
    .toReversed()
  const create = useChange('POST /w/{workspace_id}/accounts', ['accounts'])
  const [name, setName] = useState('')
  const [platform, setPlatform] = useState(offered[0] ?? 'telegram')
  const [proxy, setProxy] = useState('')
  const submit = () =>
    create.mutate(
      {
        params: { workspace_id },
        body: {
          name: name.trim(),
          platform: platform === 'sandbox' ? 'sandbox' : 'telegram',
          ...(proxy.trim() && { proxy: proxy.trim() }),
        },
      },
      {
        onSuccess: ({ account }) => {
          onClose()
          if (account.platform !== 'sandbox') onCreated(account.id)
        },
      },
    )
  return (
    <Form onSubmit={submit} change={create} action={platform === 'sandbox' ? 'Create' : 'Create and log in'}>
      <NameField value={name} onChange={setName} />
      {offered.length > 1 && (
        <SelectField
          label="Platform"
          value={platform}
          options={offered.map((each) => [each, platformName(each)])}
          onChange={setPlatform}
        />
      )}
      {platform !== 'sandbox' && (
        <ProxyField value={proxy} onChange={setProxy}>
          Set it now if the account must never connect without it.
        </ProxyField>
      )}
    </Form>
  )
}

interface EditProps {
  account: Account
  workspace_id: string
  onClose: () => void
}

function EditForm({ account, workspace_id, onClose }: EditProps) {
  const save = useChange('PATCH /w/{workspace_id}/accounts/{account_id}', ['accounts'])
  const [name, setName] = useState(account.name)
  const [limit, setLimit] = useState(account.cold_per_day?.toString() ?? '')
  const [proxy, setProxy] = useState(account.proxy ?? '')
  const submit = () => {
    const body = {
      ...(name.trim() !== account.name && { name: name.trim() }),
      ...(limit !== (account.cold_per_day?.toString() ?? '') && {
        cold_per_day: limit === '' ? null : Number(limit),
      }),
      // Sent only if it was changed, because the displayed URL lacks its password.
      ...(proxy.trim() !== (account.proxy ?? '') && { proxy: proxy.trim() || null }),
    }
    if (Object.keys(body).length === 0) return onClose()
    save.mutate({ params: { workspace_id, account_id: account.id }, body }, { onSuccess: onClose })
  }
  return (
    <Form onSubmit={submit} change={save} action="Save">
      <NameField value={name} onChange={setName} />
      <TextField
        label="First messages a day"
        help="New people it may message per day. Leave empty for the platform’s default."
        type="number"
        min={0}
        max={coldMax}
        value={limit}
        onChange={setLimit}
      />
      {account.platform !== 'sandbox' && (
        <ProxyField value={proxy} onChange={setProxy}>
          Saving another one reconnects the account.
        </ProxyField>
      )}
    </Form>
  )
}

interface LogOutProps {
  account: Account | undefined
  workspace_id: string
  onClose: () => void
}

function LogOut({ account, workspace_id, onClose }: LogOutProps) {
  const logout = useChange('POST /w/{workspace_id}/accounts/{account_id}/logout', ['accounts'])
  return (
    <Confirm
      open={account !== undefined}
      onClose={onClose}
      title={`Log out ${account?.name ?? ''}?`}
      description="It ends the session at Telegram and deletes its key here. Chats and history stay. Nothing is sent until someone logs in again."
      phrase={account?.name ?? ''}
      action="Log out"
      change={logout}
      onConfirm={() =>
        account && logout.mutate({ params: { workspace_id, account_id: account.id } }, { onSuccess: onClose })
      }
    />
  )
}
