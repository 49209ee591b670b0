/** Messages as a page that people read: plain HTML that runs nothing and loads nothing. Pure. */
import type { ExportedMessage } from './message-walk.ts'

const signs: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Whatever the text is, it stays text. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => signs[sign] ?? '') // guard: texts of strangers stay texts
}

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h2{margin-top:2.5rem;font-size:1.1rem}article{margin:.5rem 0;padding:.6rem .8rem;border:1px solid #ccc;border-radius:.5rem}
article.ours{margin-inline-start:3rem;background:#f2f5f4}header{font-size:.8rem;color:#555}p{margin:.2rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){body{color:#eee;background:#161616}article{border-color:#444}article.ours{background:#222b28}header{color:#aaa}}`

export function pageHead({ name, at }: { readonly name: string; readonly at: string }): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Messages with ${escapeHtml(name)}</title><style>${style}</style></head><body>
<h1>Messages with <bdi>${escapeHtml(name)}</bdi></h1><p>As stored on <time>${escapeHtml(at)}</time>, times in UTC.</p>
`
}

/** `files`: the paths of those that the archive has, by attachment. */
export function pagePart(
  messages: readonly ExportedMessage[],
  { accounts, heading }: { readonly accounts: ReadonlyMap<string, string>; readonly heading: boolean },
): string {
  const [first] = messages
  if (!first) return ''
  const account = escapeHtml(accounts.get(first.account_id) ?? first.account_id)
  const where = first.chat_id.includes(':-') ? `, in the group ${escapeHtml(first.chat_id)}` : ''
  const head = heading ? `<h2>With the account <bdi>${account}</bdi>${where}</h2>\n` : ''
  return head + messages.map(articleOf).join('')
}

function articleOf({ at, is_sender, by, campaign, text, attachments }: ExportedMessage): string {
  const who = is_sender ? `Sent by ${senderOf({ by, campaign })}` : 'Received'
  const files = attachments.map(
    ({ file_name, size }) => `<p>File: <bdi>${escapeHtml(file_name)}</bdi>, ${size} bytes</p>`,
  )
  return `<article${is_sender ? ' class="ours"' : ''}><header><time>${escapeHtml(at)}</time> ${who}</header>
<p dir="auto">${escapeHtml(text)}</p>${files.join('')}</article>
`
}

function senderOf({ by, campaign }: Pick<ExportedMessage, 'by' | 'campaign'>): string {
  const name = `<bdi>${escapeHtml(campaign?.name ?? by?.name ?? '')}</bdi>`
  if (campaign) return `the campaign ${name}, message ${campaign.step + 1}`
  return by?.name ? name : 'the account, outside Parley'
}

export const pageEnd = '</body></html>\n'
