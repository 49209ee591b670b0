/** The page at /docs around Scalar's reference. It contains nothing inline, so its policy allows no inline script. */

import { documentedOrigin } from '../openapi/openapi-texts.ts'

export interface Chapter {
  readonly title: string
  readonly slug: string
  readonly url: string
  /** Whether the page may send its requests. */
  readonly tryable: boolean
}

/** Two speech bubbles: one speaks, the other answers. */
export const mark = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<path fill="#0d9488" d="M6 3h14a4 4 0 0 1 4 4v7a4 4 0 0 1-4 4h-7l-5.2 4.3A.8.8 0 0 1 6.5 21.7V18H6a4 4 0 0 1-4-4V7a4 4 0 0 1 4-4z"/>
<path fill="#f59e0b" d="M26 10.2a4 4 0 0 1 4 3.8v7a4 4 0 0 1-4 4h-.5v3.7a.8.8 0 0 1-1.3.6L19 25h-5a4 4 0 0 1-3-1.4L15.2 20H20a6 6 0 0 0 6-6z"/>
</svg>
`

/** `dashboard` is where the header links to; undefined if the server has none. */
export const makePage = (dashboard: string | undefined) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Parley API</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="description" content="The API of this Parley instance: every operation, with a form to try it." />
    <link rel="icon" type="image/svg+xml" href="/docs/mark.svg" />
    <link rel="stylesheet" href="/docs/page.css" />
  </head>
  <body>
    <header class="parley">
      <a href="/docs/"><img src="/docs/mark.svg" alt="" width="24" height="24" />Parley</a>
      <span>API reference</span>${dashboard ? `\n      <a class="dashboard" href="${dashboard}">Dashboard</a>` : ''}
    </header>
    <div id="reference"></div>
    <noscript><p>This page needs JavaScript. The document behind it is <a href="/api/v1/openapi.json">openapi.json</a>.</p></noscript>
    <script src="/docs/js/page.js"></script>
    <script src="/docs/js/scalar.js"></script>
  </body>
</html>
`

/** Uses the reference's own colours, so that both themes fit. Their names exist once it has started. */
export const style = `:root {
  --scalar-custom-header-height: 48px;
}
body {
  margin: 0;
}
header.parley {
  position: sticky;
  top: 0;
  z-index: 20;
  box-sizing: border-box;
  height: 48px;
  padding: 0 16px;
  display: flex;
  align-items: center;
  gap: 10px;
  font: 14px/1 system-ui, sans-serif;
  color: var(--scalar-color-1, CanvasText);
  background: var(--scalar-background-1, Canvas);
  border-bottom: 1px solid var(--scalar-border-color, #8884);
}
header.parley a {
  display: flex;
  align-items: center;
  gap: 8px;
  font-weight: 600;
  font-size: 16px;
  color: inherit;
  text-decoration: none;
}
header.parley a.dashboard {
  margin-left: auto;
  font: inherit;
}
header.parley span {
  color: var(--scalar-color-2, GrayText);
}
noscript p {
  margin: 24px 16px;
  font: 16px/1.5 system-ui, sans-serif;
}
`

const common = {
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  defaultOpenAllTags: true,
  hideModels: true,
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  persistAuth: true,
}

/** Runs before the reference is loaded, and starts it when it is ready. */
export function makeScript(chapters: readonly Chapter[]): string {
  const configurations = chapters.map(({ title, slug, url, tryable }, at) => ({
    ...common,
    title,
    slug,
    url,
    default: at === 0,
    ...(!tryable && { hideTestRequestButton: true }),
  }))
  return `'use strict'
const configurations = ${JSON.stringify(configurations)}
// Keep a typed key for this tab only: what the reference would store forever ends with the tab.
Object.defineProperty(window, 'localStorage', { value: window.sessionStorage })
// The document is the same everywhere; replace the address in its quickstart with the one of this page.
async function readDocument({ url, ...rest }) {
  const answer = await fetch(url)
  if (!answer.ok) return { url, ...rest }
  return { ...rest, content: (await answer.text()).replaceAll('${documentedOrigin}', location.origin) }
}
const read = Promise.all(configurations.map(readDocument)).catch(() => configurations)
addEventListener('DOMContentLoaded', async () => {
  Scalar.createApiReference('#reference', await read)
})
`
}
