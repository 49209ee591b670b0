/** Which stage is shown, as links with its count. */
import { Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { ExactLine } from '../../ui/exact-text.tsx'
import { StageDot } from '../../ui/stage-dot.tsx'
import type { Stage } from '../../ui/stages.ts'
import { countedText } from './board-view.ts'
import type { PipelineSearch } from './pipeline-search.ts'

const searchOf = (stage: string | undefined) => (before: object) => {
  const { stage: _, ...rest } = before as PipelineSearch
  return stage === undefined ? rest : { ...rest, stage }
}

interface SwitchProps {
  stages: readonly (Stage & { readonly count?: number })[]
  /** Undefined: all of them. */
  current: string | undefined
  workspace_id: string
  /** Offers the chats of every stage too. */
  all?: boolean
}

const look = `flex h-11 items-center gap-1.75 whitespace-nowrap rounded-lg px-3 text-xs font-medium text-soft ring-1 ring-inset ring-line
  hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-wash aria-[current=page]:text-ink aria-[current=page]:ring-transparent min-[761px]:h-7`

export function StageSwitch({ stages, current, workspace_id, all = false }: SwitchProps) {
  const place = useRef<HTMLUListElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another stage is the reason to scroll.
  useEffect(() => {
    place.current
      ?.querySelector('[aria-current=page]')
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
  const linkTo = (stage: string | undefined) =>
    ({
      to: '/w/$workspace_id/pipeline',
      params: { workspace_id },
      search: searchOf(stage),
      'aria-current': current === stage ? 'page' : undefined,
      activeOptions: { exact: true, includeSearch: true },
      resetScroll: false,
    }) as const
  return (
    <nav aria-label="Stages" className="shrink-0 border-b border-line">
      <ul ref={place} className="flex gap-1.5 overflow-x-auto px-3 py-2 min-[761px]:px-5">
        {all && (
          <li>
            <Link {...linkTo(undefined)} className={look}>
              All
            </Link>
          </li>
        )}
        {stages.map(({ key, label, count }) => (
          <li key={key}>
            <Link {...linkTo(key)} className={look}>
              <StageDot stages={stages} of={key} />
              <span className="max-w-40 truncate">
                <ExactLine text={label} cut />
              </span>
              {count !== undefined && <span className="font-normal text-muted">{countedText(count)}</span>}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
