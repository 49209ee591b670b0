/** Who else has a chat open or is typing in it. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { type Answer, ask } from '../api.ts'
import { useSession } from '../place.ts'
import { onMarks } from './live.ts'

export type PresentUser = Answer<'POST /w/{workspace_id}/chats/{chat_id}/presence'>['others'][number]

/** The service forgets after 30 s. */
const sayMs = 15_000
const typingMs = 5_000

interface ChatPlace {
  readonly workspace_id: string
  readonly account_id: string
  readonly chat_id: string
}

/** Others in the chat while it is shown, and what to call at a key press in its composer. */
export function usePresence(place: ChatPlace): {
  readonly others: readonly PresentUser[]
  readonly typed: () => void
} {
  const { workspace_id, account_id, chat_id } = place
  const own = useSession().user.id
  const [others, setOthers] = useState<readonly PresentUser[]>([])
  const typedAt = useRef(0)
  const sayTyping = useRef(() => {})
  useEffect(() => {
    /** Names by user id: a mark has no name. */
    let named = new Set<string>()
    let asking = false
    const say = (state: 'open' | 'typing' | 'gone') =>
      ask('POST /w/{workspace_id}/chats/{chat_id}/presence', {
        params: { workspace_id, chat_id },
        body: { account_id, state },
      }).then(
        (answer) => {
          named = new Set(answer.others.map(({ user_id }) => user_id))
          setOthers(answer.others)
        },
        // Presence is optional: without it the page works as before.
        () => {},
      )
    const present = () => (Date.now() - typedAt.current < typingMs ? 'typing' : 'open')
    const sayNow = () => void say(document.visibilityState === 'visible' ? present() : 'gone')
    sayTyping.current = () => void say('typing')
    sayNow()
    const timer = setInterval(() => document.visibilityState === 'visible' && sayNow(), sayMs)
    document.addEventListener('visibilitychange', sayNow)
    const off = onMarks((marks) => {
      for (const { kind, user_id, state, ...at } of marks) {
        const here =
          at.workspace_id === workspace_id && at.account_id === account_id && at.chat_id === chat_id
        if (kind !== 'presence' || !here || !user_id || !state) continue
        setOthers((known) => withState(known, user_id, state))
        if (named.has(user_id) || user_id === own || state === 'gone' || asking) continue
        asking = true
        // Their page asks for our name in the same way, and then both know.
        setTimeout(() => {
          asking = false
          sayNow()
        }, 200)
      }
    })
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', sayNow)
      off()
      setOthers([])
      void say('gone')
    }
  }, [workspace_id, account_id, chat_id, own])
  const typed = useCallback(() => {
    const began = Date.now() - typedAt.current >= typingMs
    if (!began) return
    typedAt.current = Date.now()
    sayTyping.current()
  }, [])
  return { others, typed }
}

/** A user who is new here appears with the next answer, which has their name. */
function withState(
  known: readonly PresentUser[],
  user_id: string,
  state: 'open' | 'typing' | 'gone',
): readonly PresentUser[] {
  if (state === 'gone') return known.filter((user) => user.user_id !== user_id)
  return known.map((user) => (user.user_id === user_id ? { ...user, state } : user))
}
