/** Names and colours of stages. */
export interface Stage {
  readonly key: string
  readonly label: string
  readonly hidden: boolean
  readonly color?: string | null
}

const palette = ['gray', 'orange', 'blue', 'purple', 'green', 'teal', 'pink', 'yellow']

/** The colour that a person chose, else one by its position. */
export function stageColour(stages: readonly Stage[], key: string): string {
  const at = stages.findIndex((stage) => stage.key === key)
  return stages[at]?.color ?? palette[Math.max(0, at) % palette.length] ?? 'gray'
}

export function stageName(stages: readonly Stage[], key: string | null): string | null {
  return key === null ? null : (stages.find((stage) => stage.key === key)?.label ?? key)
}
