/** Sends the requests about one chat one after the other: otherwise a change and its undo could arrive in either order. */

/** The last request for each chat. */
const turns = new Map<string, Promise<unknown>>()

export function inTurn<T>(key: string, request: () => Promise<T>): Promise<T> {
  const before = turns.get(key) ?? Promise.resolve()
  const turn = before.catch(() => {}).then(request)
  turns.set(key, turn) // guard: changes of a chat in turn
  const forget = () => turns.get(key) === turn && turns.delete(key)
  turn.then(forget, forget)
  return turn
}

/** Whether another request about the chat is on its way. */
export function isAsking(key: string): boolean {
  return turns.has(key)
}
