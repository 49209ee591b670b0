/** Beside the list while no chat is open. */
import { MessagesSquare } from 'lucide-react'

export function NoChat() {
  return (
    <section
      aria-label="Chat"
      className="hidden place-content-center justify-items-center p-8 text-center min-[761px]:grid min-[1181px]:col-span-2"
    >
      <MessagesSquare aria-hidden className="mb-3 size-6 text-muted" />
      <p className="text-muted">Choose a chat. Opening it does not mark it as read for them.</p>
    </section>
  )
}
