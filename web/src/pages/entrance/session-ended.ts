/** What has become of what a user was writing when their session ended. */
export const endedWords = {
  nothing: '',
  kept: 'What you wrote is kept.',
  partly: 'What you wrote is kept, but not what stood in the open form.',
  gone: 'What stood in the open form is not kept.',
  lost: 'This browser could not keep what you wrote.',
} as const

export type Ended = keyof typeof endedWords

/** The address may say anything. */
export const isEnded = (said: string | undefined): said is Ended =>
  said !== undefined && Object.hasOwn(endedWords, said)
