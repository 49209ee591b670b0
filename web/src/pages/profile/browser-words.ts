/** A browser's user agent in words. An unknown one appears under its own name. */

const browsers: readonly (readonly [RegExp, string])[] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
]
const systems: readonly (readonly [RegExp, string])[] = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
]

export function browserWords(user_agent: string | null): string {
  if (!user_agent) return 'Unknown browser'
  const named = (list: typeof browsers) => list.find(([pattern]) => pattern.test(user_agent))?.[1]
  const browser = named(browsers)
  if (!browser) return user_agent.slice(0, 60)
  const system = named(systems)
  return system ? `${browser} on ${system}` : browser
}
