/**
 * How a login code reaches its owner (https://core.telegram.org/api/auth): the first way of the number's plan, then after
 * `auth.resendCode` the next one.
 */
import type { tl } from '@mtcute/core'
import Long from 'long'

export const codeWays = [
  'app',
  'sms',
  'call',
  'flash_call',
  'missed_call',
  'email',
  'word',
  'phrase',
  'fragment',
  'payment',
] as const
export type CodeWay = (typeof codeWays)[number]

export interface CodePlan {
  readonly ways: readonly CodeWay[]
  /** After this long a client may ask for the next way. */
  readonly timeout_seconds: number
}

export const codePlanDefault: CodePlan = { ways: ['app'], timeout_seconds: 120 }

const digits = '12345'
const texts: Partial<Record<CodeWay, string>> = {
  word: 'pelican',
  phrase: 'seven pelicans sleep',
  /** The whole number that called. */
  flash_call: '15550112345',
}

export function codeOf(way: CodeWay): string {
  return texts[way] ?? digits
}

/** What the next type can be is a shorter list than what a type can be. */
function nextTypeOf(way: CodeWay | undefined): tl.auth.TypeCodeType | undefined {
  switch (way) {
    case 'sms':
    case 'word':
    case 'phrase':
      return { _: 'auth.codeTypeSms' }
    case 'call':
      return { _: 'auth.codeTypeCall' }
    case 'flash_call':
      return { _: 'auth.codeTypeFlashCall' }
    case 'missed_call':
      return { _: 'auth.codeTypeMissedCall' }
    case 'fragment':
      return { _: 'auth.codeTypeFragmentSms' }
    default:
      return undefined
  }
}

function typeOf(way: Exclude<CodeWay, 'payment'>): tl.auth.TypeSentCodeType {
  const { length } = digits
  switch (way) {
    case 'app':
      return { _: 'auth.sentCodeTypeApp', length }
    case 'sms':
      return { _: 'auth.sentCodeTypeSms', length }
    case 'call':
      return { _: 'auth.sentCodeTypeCall', length }
    case 'flash_call':
      return { _: 'auth.sentCodeTypeFlashCall', pattern: '1555*' }
    case 'missed_call':
      return { _: 'auth.sentCodeTypeMissedCall', prefix: '1555', length }
    case 'email':
      return { _: 'auth.sentCodeTypeEmailCode', emailPattern: 'm***a@example.org', length }
    case 'word':
      return { _: 'auth.sentCodeTypeSmsWord', beginning: 'p' }
    case 'phrase':
      return { _: 'auth.sentCodeTypeSmsPhrase', beginning: 'seven' }
    case 'fragment':
      return { _: 'auth.sentCodeTypeFragmentSms', url: 'https://fragment.example/number/1', length }
  }
}

export interface SentCode {
  readonly phone: string
  readonly plan: CodePlan
  /** The index of the way that was used. */
  readonly at: number
}

export function viewSentCode({ plan, at }: SentCode, phoneCodeHash: string): tl.auth.TypeSentCode {
  const way = plan.ways[at] ?? 'app'
  if (way === 'payment') {
    return {
      _: 'auth.sentCodePaymentRequired',
      storeProduct: 'org.example.login',
      phoneCodeHash,
      supportEmailAddress: 'login@example.org',
      supportEmailSubject: 'Login',
      premiumDays: 7,
      currency: 'EUR',
      amount: Long.fromNumber(199),
    }
  }
  const nextType = nextTypeOf(plan.ways[at + 1])
  return {
    _: 'auth.sentCode',
    type: typeOf(way),
    phoneCodeHash,
    ...(nextType && { nextType, timeout: plan.timeout_seconds }),
  }
}
