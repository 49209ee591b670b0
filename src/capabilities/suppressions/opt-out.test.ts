import { describe, expect, test } from 'vitest'
import { readConfig } from '../../config.ts'
import { isOptOut } from './opt-out.ts'

const words = (text?: string) =>
  readConfig(text === undefined ? {} : { PARLEY_OPT_OUT_WORDS: text }).opt_out_words

describe('asking to stop', () => {
  test('is a message that contains nothing else, in any spelling', () => {
    for (const text of [
      'STOP',
      'Stop!',
      '  stop. ',
      'stop 🙏',
      'Unsubscribe',
      'opt-out',
      'Désabonner',
      'desabonner',
      'СТОП',
      'Відписатися!',
      '退订',
      '配信停止',
      'إلغاء الاشتراك',
      'Please stop.',
    ]) {
      expect(isOptOut(words(), text), text).toBe(true)
    }
    for (const text of [
      '',
      '!',
      '🛑',
      'Do not stop',
      'stop by tomorrow',
      'nonstop',
      'bus stop',
      // "That is right", and a name: without accents they would be words for stopping.
      'Đúng',
      'Huy',
      'stops',
      'unsubscribed from the other list',
      `${'stop '.repeat(60)}`,
    ]) {
      expect(isOptOut(words(), text), text).toBe(false)
    }
  })

  test('is configurable: other words, more words, none', () => {
    expect(isOptOut(words('halt, no more'), 'No more!')).toBe(true)
    expect(isOptOut(words('halt'), 'stop')).toBe(false)
    expect(isOptOut(words('+halt'), 'stop')).toBe(true)
    expect(isOptOut(words('+halt'), 'Halt')).toBe(true)
    expect(words('none')).toEqual([])
    expect(isOptOut(words('halt,'), 'halt')).toBe(true)
    for (const none of [' , ', '+', '!!!, 🛑', 'halt, 🛑']) {
      expect(() => words(none), none).toThrow('PARLEY_OPT_OUT_WORDS')
    }
  })
})
