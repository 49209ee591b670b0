import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { Prompt } from './prompt.ts'

function open({ isTTY }: { isTTY: boolean }) {
  const input = Object.assign(new PassThrough(), { isTTY, setRawMode: () => {} })
  const output = new PassThrough()
  let written = ''
  output.setEncoding('utf8').on('data', (text: string) => {
    written += text
  })
  return { input, prompt: new Prompt({ input, output }), written: () => written }
}

test('at a terminal a code is shown as it is typed, and a password is not', async () => {
  const { input, prompt, written } = open({ isTTY: true })
  const code = prompt.ask('Code: ')
  input.write('12345\r')
  expect(await code).toBe('12345')
  const password = prompt.ask('Password: ', { hidden: true })
  input.write('correct horse\r')
  expect(await password).toBe('correct horse')
  // The arrow key recalls the previous line.
  const next = prompt.ask('Code: ')
  input.write('\x1b[A7\r')
  expect(await next).toBe('7')
  prompt.close()
  expect(written()).toContain('12345')
  expect(written()).toContain('Password: \n')
  expect(written()).not.toMatch(/correct|horse/)
})

test('piped lines answer in turn, and the end of the input is an error', async () => {
  const { input, prompt, written } = open({ isTTY: false })
  input.end('12345\n spaces stay \n')
  expect(await prompt.ask('Code: ')).toBe('12345')
  expect(await prompt.ask('Password: ', { hidden: true })).toBe(' spaces stay ')
  await expect(prompt.ask('Code: ')).rejects.toThrow('The input ended')
  expect(written()).toBe('Code: Password: \nCode: ')
})
