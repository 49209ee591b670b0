/** Which notifications this browser shows, and the button that enables them. */
import { BellRing } from 'lucide-react'
import { useState } from 'react'
import { restartNotifying } from '../../data/live/live.ts'
import {
  type NotificationSettings,
  readNotificationSettings,
  saveNotificationSettings,
} from '../../data/live/notification-settings.ts'
import { useSession } from '../../data/place.ts'
import { Button } from '../../ui/button.tsx'
import { Choice, Choices } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Section } from '../../ui/page.tsx'

/** Undefined where the page is served without TLS, and on some phones. */
const isOffered = 'Notification' in globalThis && 'locks' in navigator

const messageChoices: readonly (readonly [NotificationSettings['messages'], string, string])[] = [
  ['mine', 'Messages in my chats', 'Only chats assigned to you.'],
  ['all', 'Messages in all chats', 'Of every account of your workspaces.'],
  ['none', 'No messages', 'Only what is chosen below.'],
]

export function Notifications() {
  const { user } = useSession()
  const [settings, setSettings] = useState(() => readNotificationSettings(user.id))
  const [isBlocked, setBlocked] = useState(isOffered && Notification.permission === 'denied')
  const save = (next: NotificationSettings | null) => {
    saveNotificationSettings(next)
    setSettings(next)
    restartNotifying()
  }
  const enable = async () => {
    const permission = await Notification.requestPermission()
    setBlocked(permission === 'denied')
    if (permission !== 'granted') return
    save({ user_id: user.id, messages: 'mine', approvals: true, accounts: true, text: false })
  }
  const isOn = settings !== null && !isBlocked && isOffered
  return (
    <Section title="Notifications" about="In this browser, while Parley is open in one of its tabs.">
      {!isOffered && <Notice tone="info">Notifications need HTTPS.</Notice>}
      {isBlocked && (
        <Notice tone="warn">
          The browser blocks them for this page. Allow notifications in the browser’s site settings.
        </Notice>
      )}
      {isOffered && !isOn && (
        <Button className="justify-self-start" onClick={() => void enable()}>
          <BellRing aria-hidden className="size-4" />
          Enable notifications
        </Button>
      )}
      {isOn && (
        <>
          <Choices legend="Messages">
            {messageChoices.map(([messages, label, help]) => (
              <Choice
                key={messages}
                type="radio"
                name="messages"
                label={label}
                help={help}
                checked={settings.messages === messages}
                onChange={() => save({ ...settings, messages })}
              />
            ))}
          </Choices>
          <Choices legend="Also">
            <Choice
              label="Approvals"
              help="When an agent with one of your keys waits for you."
              checked={settings.approvals}
              onChange={(event) => save({ ...settings, approvals: event.target.checked })}
            />
            <Choice
              label="Accounts"
              help="When one needs a login, or the platform restricts it."
              checked={settings.accounts}
              onChange={(event) => save({ ...settings, accounts: event.target.checked })}
            />
            <Choice
              label="Show names and texts"
              help="Anyone who sees this screen can read them."
              checked={settings.text}
              onChange={(event) => save({ ...settings, text: event.target.checked })}
            />
          </Choices>
          <Button className="justify-self-start" onClick={() => save(null)}>
            Turn off notifications
          </Button>
        </>
      )}
    </Section>
  )
}
