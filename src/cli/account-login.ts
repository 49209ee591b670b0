/** `parley account login`, `import` and `logout`: in a process of their own, with a person at the terminal. */
import { type Command, InvalidArgumentError } from 'commander'
import type { App } from '../app.ts'
import { type LoginDialogue, logIn, logOut, requirePlatform } from '../capabilities/accounts/accounts.ts'
import { Refusal } from '../lib/errors.ts'
import type { LoginCodeWay, Platform } from '../platform/port.ts'
import { Noted } from './output.ts'
import { closePlatforms, openPlatforms, platformModules } from './platforms.ts'
import { Prompt } from './prompt.ts'
import { type Shared, verb } from './verbs.ts'

export function addLoginVerbs(account: Command): void {
  verb<Shared & { phone?: string }>(
    account,
    'login <id>',
    'log it in at its platform: by a QR code, or by --phone and a code',
    async (app, actor, { phone, dataDir }, id = '') => {
      const prompt = new Prompt()
      try {
        const made = await withPlatform(app, { id, directory: dataDir }, async (platform) => {
          if (phone === undefined) prompt.say(scanIt)
          return logIn(app, actor, { id, phone: phone ?? null, platform, dialogue: await dialogueAt(prompt) })
        })
        return new Noted(made, 'The login is stored. A worker connects the account.')
      } finally {
        prompt.close()
      }
    },
  ).option(
    '--phone <number>',
    'its phone number in international form, such as +4915112345678; without it, by a QR code',
    phoneNumber,
  )
  verb<Shared>(
    account,
    'import <id>',
    'take over its session of another program (Telethon, Pyrogram, gramjs), read from standard input',
    async (app, actor, { dataDir }, id = '') => {
      const prompt = new Prompt()
      try {
        prompt.say(neverAgain)
        const session_string = await prompt.ask('Session string: ', { hidden: true })
        const dialogue = await dialogueAt(prompt)
        const made = await withPlatform(app, { id, directory: dataDir }, (platform) =>
          logIn(app, actor, { id, phone: null, session_string, platform, dialogue }),
        )
        return new Noted(made, `The session is stored. A worker connects the account. ${neverAgain}`)
      } finally {
        prompt.close()
      }
    },
  )
  verb<Shared & { local?: true }>(
    account,
    'logout <id>',
    'end its login at the platform and delete the key; the history stays',
    async (app, actor, { local, dataDir }, id = '') => {
      if (local) return logOut(app, actor, { id, platform: null })
      return withPlatform(app, { id, directory: dataDir }, (platform) => logOut(app, actor, { id, platform }))
    },
  ).option('--local', 'only delete the key here; at the platform the login stays until it is ended there')
}

/** Opens the platform of the account, and no other. */
async function withPlatform<T>(
  app: App,
  { id, directory }: { id: string; directory: string },
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const name = await requirePlatform(app.db, id)
  const modules = platformModules.filter((module) => module.name === name)
  const open = await openPlatforms(app, modules, { role: 'work', directory })
  try {
    const [opened] = open.values()
    if (!opened) {
      throw new Refusal(
        `This process does not use the platform ${name}: its variables are not set (.env.example).`,
      )
    }
    return await work(opened.platform)
  } finally {
    await closePlatforms(open)
  }
}

const neverAgain =
  'The program that has this session so far must never run with it again: Telegram destroys a session that two programs use at once.'

const scanIt = 'Scan this code with the app on your phone: Settings, Devices, Link Desktop Device.'

const ways: Readonly<Record<LoginCodeWay, string>> = {
  app: 'The platform has sent a code to the app on your other devices.',
  sms: 'The platform has sent a code by SMS.',
  word: 'The platform has sent a word by SMS.',
  phrase: 'The platform has sent a phrase by SMS. Type all of it.',
  call: 'The platform is calling this number to say the code.',
  missed_call: 'The platform is calling this number: the code is the last digits of the number that calls.',
  fragment: 'The code is at Fragment, where the number was bought.',
  email: "The platform has sent a code to the account's e-mail address.",
  other: 'The platform has sent a code.',
}

export async function dialogueAt(prompt: Prompt): Promise<LoginDialogue> {
  const { renderUnicodeCompact } = await import('uqr')
  let drawn = 0
  return {
    show({ url }) {
      const picture = renderUnicodeCompact(url)
      // Overwrites the previous code, which no longer works.
      const up = drawn > 0 && process.stderr.isTTY ? `\x1b[${drawn}A\x1b[J` : ''
      drawn = picture.split('\n').length
      prompt.say(`${up}${picture}`)
    },
    async ask(step) {
      if (step.kind === 'code') {
        prompt.say(step.wrong ? 'This code is wrong.' : ways[step.sent_by])
        if (step.place !== null) prompt.say(printable(step.place)) // guard: the terminal shows where a code is
        if (step.again) prompt.say(againAt(step.again)) // guard: the terminal says how a code is sent again
        return prompt.ask('Code: ')
      }
      if (step.wrong) prompt.say('This password is wrong.')
      const hint = step.hint ? ` (hint: ${printable(step.hint)})` : ''
      return prompt.ask(`Two-step password${hint}: `, { hidden: true })
    },
  }
}

const againWays: Readonly<Record<LoginCodeWay, string>> = {
  app: 'to the app',
  sms: 'by SMS',
  word: 'by SMS',
  phrase: 'by SMS',
  call: 'by a call',
  missed_call: 'by a missed call',
  email: 'by e-mail',
  fragment: 'at Fragment',
  other: 'another way',
}

function againAt({ by, at }: { readonly by: LoginCodeWay; readonly at: string }): string {
  const seconds = Math.ceil((Date.parse(at) - Date.now()) / 1000)
  const wait = seconds > 0 ? ` in ${seconds} s` : ''
  return `An empty line has it sent ${againWays[by]}${wait}.`
}

/** A control character in a text from outside could move the terminal's cursor. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�')
}

export function phoneNumber(value: string): string {
  const digits = value.replaceAll(/[\s().-]/g, '')
  if (!/^\+?[1-9]\d{6,14}$/.test(digits)) {
    throw new InvalidArgumentError('A number in international form, such as +4915112345678.')
  }
  return digits.startsWith('+') ? digits : `+${digits}`
}
