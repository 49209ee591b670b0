/** For admins: the stages of the pipeline. */
import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { type BoardStage, type EditedStage, stageListQuery } from '../../data/pipeline.ts'
import { useChange } from '../../data/queries.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/notice.tsx'
import { stageColour } from '../../ui/stages.ts'
import { Loaded } from '../../ui/states.tsx'
import { countedText } from './board-view.ts'
import { AddForm, ColourField, NameField, PlaceButtons } from './place-rows.tsx'

/** Every chat begins here, so it can be neither hidden nor deleted. */
const firstKey = 'new'
const touched = ['stages', 'board', 'inbox', 'chat'] as const

interface DialogProps {
  workspace_id: string
  board: readonly BoardStage[]
  onClose: () => void
}

export function StagesDialog({ workspace_id, board, onClose }: DialogProps) {
  const query = useQuery(stageListQuery(workspace_id))
  const [deleting, setDeleting] = useState<EditedStage>()
  return (
    <>
      <Dialog open={!deleting} onClose={onClose} title="Stages" description="In the order of the board.">
        <div className="-mx-6 min-h-0 overflow-y-auto px-6 py-1">
          <Loaded query={query}>
            {({ stages }) => <StageRows workspace_id={workspace_id} stages={stages} onDelete={setDeleting} />}
          </Loaded>
        </div>
        <NewStage workspace_id={workspace_id} />
      </Dialog>
      {deleting && (
        <DeleteStage
          workspace_id={workspace_id}
          stage={deleting}
          board={board}
          onClose={() => setDeleting(undefined)}
        />
      )}
    </>
  )
}

interface RowsProps {
  workspace_id: string
  stages: readonly EditedStage[]
  onDelete: (stage: EditedStage) => void
}

function StageRows({ workspace_id, stages, onDelete }: RowsProps) {
  const change = useChange('PATCH /w/{workspace_id}/stages/{stage_key}', touched)
  const set = (stage_key: string, body: Parameters<typeof change.mutate>[0]['body']) =>
    change.mutate({ params: { workspace_id, stage_key }, body })
  return (
    <div className="grid gap-2">
      <Failure error={change.error} />
      <ul aria-label="Stages" className="grid gap-1.5">
        {stages.map(({ key, label, color, terminal, hidden }, at) => (
          <li key={key} className="flex flex-wrap items-center gap-x-1.5 gap-y-1 sm:flex-nowrap">
            <NameField
              label={`Name of the stage ${label}`}
              value={label}
              onChange={(name) => set(key, { label: name })}
            />
            <ColourField
              label={`Colour of ${label}`}
              value={color}
              fallback={stageColour(stages, key)}
              onChange={(next) => set(key, { color: next })}
            />
            <Flag
              name="Final"
              label={`${label} is a final stage`}
              title="A chat in it is finished"
              checked={terminal}
              onChange={(checked) => set(key, { terminal: checked })}
            />
            <Flag
              name="Hide"
              label={`Hide ${label}`}
              title="Chats cannot be moved to a hidden stage"
              checked={hidden}
              disabled={key === firstKey}
              onChange={(checked) => set(key, { hidden: checked })}
            />
            <PlaceButtons
              name={label}
              at={at}
              count={stages.length}
              onPlace={(place) => set(key, { place })}
              onDelete={
                key === firstKey ? undefined : () => onDelete({ key, label, color, terminal, hidden })
              }
            />
          </li>
        ))}
      </ul>
    </div>
  )
}

interface FlagProps {
  name: string
  /** For screen readers. */
  label: string
  title: string
  checked: boolean
  disabled?: boolean
  onChange: (checked: boolean) => void
}

function Flag({ name, label, title, checked, disabled = false, onChange }: FlagProps) {
  return (
    <label
      title={title}
      className="flex h-8 shrink-0 items-center gap-1.5 text-xs text-soft has-disabled:opacity-40 pointer-coarse:h-11"
    >
      <input
        type="checkbox"
        aria-label={label}
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4 accent-accent"
      />
      {name}
    </label>
  )
}

function NewStage({ workspace_id }: { workspace_id: string }) {
  const create = useChange('POST /w/{workspace_id}/stages', touched)
  return (
    <div className="mt-4">
      <AddForm
        label="Name of the new stage"
        placeholder="For example: In talks"
        action={
          <>
            <Plus aria-hidden className="size-4" />
            Add stage
          </>
        }
        change={create}
        onAdd={(label, done) => create.mutate({ params: { workspace_id }, body: { label } }, done)}
      />
    </div>
  )
}

interface DeleteProps extends DialogProps {
  stage: EditedStage
}

function DeleteStage({ workspace_id, stage, board, onClose }: DeleteProps) {
  const remove = useChange('DELETE /w/{workspace_id}/stages/{stage_key}', touched)
  const count = board.find(({ key }) => key === stage.key)?.count ?? 0
  const first = board.find(({ key }) => key === firstKey)?.label ?? 'New'
  const chats = count === 1 ? 'Its chat returns' : `Its ${countedText(count)} chats return`
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Delete “${stage.label}”?`}
      description={
        count === 0
          ? 'No chat is in it.'
          : `${chats} to “${first}”. Which chats they were is not kept: this cannot be undone.`
      }
      // A stage without chats can be created again.
      {...(count > 0 && { phrase: stage.label })}
      action="Delete stage"
      change={remove}
      onConfirm={() =>
        remove.mutate({ params: { workspace_id, stage_key: stage.key } }, { onSuccess: onClose })
      }
    />
  )
}
