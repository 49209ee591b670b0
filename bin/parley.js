#!/usr/bin/env node
// Runs the command line on the Node that comes as a dependency, whatever Node the machine has.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
if (Number(process.versions.node.split('.')[0]) >= 24) {
  await import(main)
} else {
  const own = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url))
  const child = spawn(own, [main, ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
  child.on('error', () => {
    process.stderr.write('Run `npm ci` first: the Node that Parley runs on is one of its dependencies.\n')
    process.exit(1)
  })
}
