/** Sends a file, as a form or as it is. `fetch` reports no upload progress. */
import type { Upload } from './api.ts'

/** `onProgress` gets the uploaded fraction, from 0 to 1. */
export function uploadOf(file: File, onProgress: (part: number) => void): Upload {
  return (url, { headers, body, signal }) =>
    post(url, { headers, signal, sent: formOf(body, file), onProgress })
}

/** Sends a text file as it is. */
export function uploadText(file: File, type: string, onProgress: (part: number) => void): Upload {
  return (url, { headers, signal }) =>
    post(url, { headers: { ...headers, 'content-type': type }, signal, sent: file, onProgress })
}

interface Post {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
  readonly sent: FormData | File
  readonly onProgress: (part: number) => void
}

function post(url: string, { headers, signal, sent, onProgress }: Post): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0)
    request.onerror = request.onabort = () => reject(new Error('No answer arrived.'))
    request.onload = () => resolve(responseOf(request))
    signal?.addEventListener('abort', () => request.abort(), { once: true })
    request.send(sent)
  })
}

function formOf(body: unknown, file: File): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(body ?? {})) form.set(field, String(value))
  form.set('attachments', file)
  return form
}

function responseOf(request: XMLHttpRequest): Response {
  const lines = request
    .getAllResponseHeaders()
    .trim()
    .split(/[\r\n]+/)
  const headers = lines.flatMap((line): [string, string][] => {
    const at = line.indexOf(':')
    return at > 0 ? [[line.slice(0, at), line.slice(at + 1).trim()]] : []
  })
  return new Response(request.responseText, { status: request.status, headers })
}
