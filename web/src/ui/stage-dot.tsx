/** The colour of a stage, beside its name. */
import { colourClass } from './face.tsx'
import { type Stage, stageColour } from './stages.ts'

export function StageDot({ stages, of }: { stages: readonly Stage[]; of: string }) {
  return (
    <span
      aria-hidden
      className={`size-2 shrink-0 rounded-[3px] bg-(--c) ${colourClass(stageColour(stages, of))}`}
    />
  )
}
