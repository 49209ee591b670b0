#!/usr/bin/env -S node --max-semi-space-size=16
// Runs the command line on Node 24 or newer. On Linux that is a dependency, whatever Node the machine has.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const own = findOwn()
const packaged = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
if (Number(process.versions.node.split('.')[0]) >= 24) {
  await import('./main.js')
} else if (own) {
  const launched = fileURLToPath(new URL('launched.js', import.meta.url))
  const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
  const child = spawn(own, ['--max-semi-space-size=16', launched, ...process.argv.slice(2)], { stdio })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
  child.on('error', (error) => refuse(`The Node that Parley brings does not run here: ${error.message}.`))
} else if (packaged) {
  refuse('Run `npm ci` first: the Node that Parley runs on is one of its dependencies.')
} else {
  refuse(
    `Parley needs Node 24 or newer, and this is ${process.version}. Install one, and put it first in PATH.`,
  )
}

/** It may be in a folder of its own or, installed as a dependency, beside Parley. */
function findOwn() {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`)
  } catch {
    return undefined
  }
}

function refuse(sentence) {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
