/** What this browser notifies its user of. Another user of the same browser begins without. */

export interface NotificationSettings {
  readonly user_id: string
  /** New messages: of chats assigned to the user, of every chat, or none. */
  readonly messages: 'mine' | 'all' | 'none'
  readonly approvals: boolean
  /** Accounts that need a person. */
  readonly accounts: boolean
  /** Names and texts, which anyone who sees the screen can read. */
  readonly text: boolean
}

const name = 'parley.notifications'

/** Null: off. */
export function readNotificationSettings(user_id: string): NotificationSettings | null {
  try {
    const settings = JSON.parse(localStorage.getItem(name) ?? 'null') as NotificationSettings | null
    return settings?.user_id === user_id ? settings : null
  } catch {
    return null
  }
}

export function saveNotificationSettings(settings: NotificationSettings | null): void {
  if (settings) localStorage.setItem(name, JSON.stringify(settings))
  else localStorage.removeItem(name)
}

/** Before anything of it is loaded. */
export function mayNotify(): boolean {
  return localStorage.getItem(name) !== null
}
