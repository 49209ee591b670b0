/** For admins: the columns that a chat can have, and the options to choose from. */
import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import type { Column } from '../../data/api-types.ts'
import { columnsQuery } from '../../data/chats.ts'
import { useChange } from '../../data/queries.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Select } from '../../ui/select.tsx'
import { Loaded } from '../../ui/states.tsx'
import { AddForm, ColourField, NameField, PlaceButtons } from './place-rows.tsx'

const touched = ['columns', 'inbox', 'chat'] as const

const typeNames: Readonly<Record<Column['type'], string>> = {
  select: 'One option',
  multi_select: 'Several options',
  text: 'Text',
  number: 'Number',
  date: 'Date',
  checkbox: 'Yes or no',
  url: 'Link',
}

const types = Object.entries(typeNames) as readonly [Column['type'], string][]

interface DialogProps {
  workspace_id: string
  onClose: () => void
}

export function ColumnsDialog({ workspace_id, onClose }: DialogProps) {
  const query = useQuery(columnsQuery(workspace_id))
  const [deleting, setDeleting] = useState<Column>()
  return (
    <>
      <Dialog
        open={!deleting}
        onClose={onClose}
        title="Columns"
        description="What your team notes about every chat, in this order."
      >
        <div className="-mx-6 min-h-0 overflow-y-auto px-6 py-1">
          <Loaded query={query}>
            {(columns) =>
              columns.length === 0 ? (
                <p className="text-muted">
                  No columns yet. For example: Plan, with the options Home and Trade.
                </p>
              ) : (
                <ColumnRows workspace_id={workspace_id} columns={columns} onDelete={setDeleting} />
              )
            }
          </Loaded>
        </div>
        <NewColumn workspace_id={workspace_id} />
      </Dialog>
      {deleting && (
        <DeleteColumn workspace_id={workspace_id} column={deleting} onClose={() => setDeleting(undefined)} />
      )}
    </>
  )
}

interface RowsProps {
  workspace_id: string
  columns: readonly Column[]
  onDelete: (column: Column) => void
}

function ColumnRows({ workspace_id, columns, onDelete }: RowsProps) {
  const change = useChange('PATCH /w/{workspace_id}/columns/{column_id}', touched)
  return (
    <div className="grid gap-2">
      <Failure error={change.error} />
      <ul aria-label="Columns" className="grid gap-3">
        {columns.map((column, at) => {
          const params = { workspace_id, column_id: column.id }
          return (
            <li key={column.id} className="grid gap-1.5">
              <div className="flex flex-wrap items-center gap-x-1.5 gap-y-1 sm:flex-nowrap">
                <NameField
                  label={`Name of the column ${column.name}`}
                  value={column.name}
                  onChange={(name) => change.mutate({ params, body: { name } })}
                />
                <span className="w-26 shrink-0 text-xs text-muted">{typeNames[column.type]}</span>
                <PlaceButtons
                  name={column.name}
                  at={at}
                  count={columns.length}
                  onPlace={(place) => change.mutate({ params, body: { place } })}
                  onDelete={() => onDelete(column)}
                />
              </div>
              {hasOptions(column.type) && <Options workspace_id={workspace_id} column={column} />}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

const hasOptions = (type: Column['type']) => type === 'select' || type === 'multi_select'

/** Chats that have an option keep it when it is deleted here, so nothing is lost. */
function Options({ workspace_id, column }: { workspace_id: string; column: Column }) {
  const params = { workspace_id, column_id: column.id }
  const change = useChange('PATCH /w/{workspace_id}/columns/{column_id}/options', touched)
  const remove = useChange('DELETE /w/{workspace_id}/columns/{column_id}/options', touched)
  const create = useChange('POST /w/{workspace_id}/columns/{column_id}/options', touched)
  return (
    <div className="ml-3 grid gap-1.5 border-l border-line pl-3">
      <Failure error={change.error ?? remove.error} />
      <ul aria-label={`Options of ${column.name}`} className="grid gap-1.5">
        {column.options.map(({ value, color }, at) => (
          <li key={value} className="flex flex-wrap items-center gap-x-1.5 gap-y-1 sm:flex-nowrap">
            <NameField
              label={`Name of the option ${value}`}
              value={value}
              onChange={(next) => change.mutate({ params, body: { value, name: next } })}
            />
            <ColourField
              label={`Colour of ${value}`}
              value={color}
              onChange={(next) => change.mutate({ params, body: { value, color: next } })}
            />
            <PlaceButtons
              name={value}
              at={at}
              count={column.options.length}
              onPlace={(place) => change.mutate({ params, body: { value, place } })}
              onDelete={() => remove.mutate({ params, query: { value } })}
            />
          </li>
        ))}
      </ul>
      <AddForm
        label={`New option of ${column.name}`}
        placeholder="New option"
        action="Add option"
        kind="quiet"
        change={create}
        onAdd={(value, done) => create.mutate({ params, body: { value } }, done)}
      />
    </div>
  )
}

function NewColumn({ workspace_id }: { workspace_id: string }) {
  const [type, setType] = useState<Column['type']>('select')
  const create = useChange('POST /w/{workspace_id}/columns', touched)
  return (
    <div className="mt-4">
      <AddForm
        label="Name of the new column"
        placeholder="For example: Plan"
        action={
          <>
            <Plus aria-hidden className="size-4" />
            Add column
          </>
        }
        change={create}
        onAdd={(name, done) => create.mutate({ params: { workspace_id }, body: { name, type } }, done)}
      >
        <Select
          look="field"
          aria-label="Type of the new column"
          value={type}
          options={types}
          onChange={setType}
          className="max-w-36"
        />
      </AddForm>
    </div>
  )
}

interface DeleteProps extends DialogProps {
  column: Column
}

function DeleteColumn({ workspace_id, column, onClose }: DeleteProps) {
  const remove = useChange('DELETE /w/{workspace_id}/columns/{column_id}', touched)
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Delete “${column.name}”?`}
      description="Its values are deleted from every chat. This cannot be undone."
      phrase={column.name}
      action="Delete column"
      change={remove}
      onConfirm={() =>
        remove.mutate({ params: { workspace_id, column_id: column.id } }, { onSuccess: onClose })
      }
    />
  )
}
