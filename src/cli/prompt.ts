/** Asks a person at the terminal. Writes to stderr: stdout is for results. Input that is piped is read line by line. */
import { createInterface, type Interface } from 'node:readline'
import { type Readable, Writable } from 'node:stream'
import { Refusal } from '../lib/errors.ts'

interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean }
  readonly output: Writable
}

interface Waiting {
  answer(line: string): void
  fail(error: Error): void
}

export class Prompt {
  readonly #lines: string[] = []
  readonly #output: Writable
  readonly #reader: Interface
  #waiting: Waiting | undefined
  #isHidden = false
  #hasEnded = false

  constructor({ input, output }: Terminal = { input: process.stdin, output: process.stderr }) {
    this.#output = output
    const echo = new Writable({
      write: (chunk, _, done) => {
        if (!this.#isHidden) output.write(chunk) // guard: a password is not shown
        done()
      },
    })
    // Without a history, the arrow keys cannot bring a password back.
    this.#reader = createInterface({
      input,
      output: echo,
      terminal: input.isTTY ?? false,
      historySize: 0,
    })
    this.#reader.on('line', (line) => this.#take(line))
    this.#reader.on('close', () => this.#end())
    // In raw mode Ctrl-C is a character, which would end only the reader.
    this.#reader.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  }

  say(text: string): void {
    this.#output.write(`${text}\n`)
  }

  async ask(question: string, { hidden = false }: { hidden?: boolean } = {}): Promise<string> {
    this.#output.write(question)
    this.#isHidden = hidden
    try {
      return await this.#next()
    } finally {
      // The newline of a hidden line was not shown either.
      if (hidden) this.#output.write('\n')
      this.#isHidden = false
    }
  }

  close(): void {
    this.#reader.close()
  }

  #next(): Promise<string> {
    const line = this.#lines.shift()
    if (line !== undefined) return Promise.resolve(line)
    if (this.#hasEnded) return Promise.reject(inputEnded())
    return new Promise((answer, fail) => {
      this.#waiting = { answer, fail }
    })
  }

  #take(line: string): void {
    if (this.#waiting) this.#waiting.answer(line)
    else this.#lines.push(line)
    this.#waiting = undefined
  }

  #end(): void {
    this.#hasEnded = true
    this.#waiting?.fail(inputEnded())
    this.#waiting = undefined
  }
}

function inputEnded(): Refusal {
  return new Refusal('The input ended before everything was typed.')
}
