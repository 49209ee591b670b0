/** Imports a CSV file, all or nothing, and reports each line that added nothing: on the page, and as a file. */

import { useMutation } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { writeCsv } from '../../../../src/rules/csv.ts'
import { Refused } from '../../data/api.ts'
import { keys } from '../../data/keys.ts'
import { queryClient } from '../../data/queries.ts'
import { type ImportReport, importFile } from '../../data/suppressions.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Field, FileInput, Form } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'
import { saveFile } from '../../ui/save-file.ts'

const bytesMax = 64 * 1_048_576

export function ImportDialog({ workspace_id, onClose }: { workspace_id: string; onClose: () => void }) {
  const [file, setFile] = useState<File>()
  const [part, setPart] = useState(0)
  const leaving = useRef(new AbortController())
  useEffect(() => {
    const { current } = leaving
    return () => current.abort()
  }, [])
  const run = useMutation({
    mutationFn: (chosen: File) =>
      importFile({ workspace_id, file: chosen, signal: leaving.current.signal, onProgress: setPart }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: keys.suppressions(workspace_id) }),
  })
  const fault = file && faultOf(file)
  return (
    <Dialog
      open
      onClose={onClose}
      sealed={run.isPending}
      title={run.data ? 'Imported' : 'Import a CSV file'}
      description={
        run.data
          ? undefined
          : 'Start with a header row: username, phone or platform_id. Exported files work as they are.'
      }
    >
      {run.data ? (
        <Report of={run.data} file_name={file?.name ?? 'list.csv'} onClose={onClose} />
      ) : (
        <Form
          onSubmit={() => file && run.mutate(file)}
          change={run}
          action="Import"
          disabled={file === undefined || fault !== undefined}
        >
          <Field
            label="File"
            help="UTF-8, at most 64 MiB. If it cannot be read to its end, nothing is imported."
          >
            <FileInput
              accept=".csv,text/csv,text/plain"
              onFile={(next) => {
                setFile(next)
                run.reset()
              }}
            />
          </Field>
          {fault !== undefined && <Notice tone="danger">{fault}</Notice>}
          {isRefused(run.error) && <p className="text-muted">Nothing was imported.</p>}
          {run.isPending && <Progress part={part} />}
        </Form>
      )}
    </Dialog>
  )
}

/** What is wrong with a file before it is sent. */
function faultOf({ size }: File): string | undefined {
  if (size === 0) return 'This file is empty.'
  return size > bytesMax ? 'This file is larger than 64 MiB. Import it in parts.' : undefined
}

/** Whether the service said no. Without its answer, the lines may have been added. */
function isRefused(error: unknown): boolean {
  return error instanceof Refused && error.status >= 400 && error.status < 500
}

/** Once everything is sent, the service parses and stores it, which it does in one go. */
function Progress({ part }: { part: number }) {
  const isSent = part >= 1
  return (
    <div className="grid gap-1.5">
      <progress
        aria-label="Progress"
        className="h-1.5 w-full accent-accent"
        max={1}
        {...(!isSent && { value: part })}
      />
      <p role="status" className="text-xs text-muted">
        {isSent ? 'Sent. Adding the lines…' : `Sending: ${Math.floor(part * 100)} %`}
      </p>
    </div>
  )
}

/** More would make the dialog slow; the file has them all. */
const shownMax = 200

interface ReportProps {
  of: ImportReport
  file_name: string
  onClose: () => void
}

function Report({ of: report, file_name, onClose }: ReportProps) {
  const { added, skipped_count, skipped } = report
  const unnamed = skipped_count - skipped.length
  return (
    <div className="flex min-h-0 flex-col gap-4">
      <Notice tone={skipped_count > 0 ? 'warn' : 'good'}>
        {`${number(added)} added, ${number(skipped_count)} ${skipped_count === 1 ? 'line' : 'lines'} skipped.`}
      </Notice>
      {skipped.length > 0 && (
        <ul
          aria-label="Skipped lines"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard.
          tabIndex={0}
          className="grid min-h-0 gap-1 overflow-y-auto rounded-lg p-3 text-xs ring-1 ring-line"
        >
          {skipped.slice(0, shownMax).map(({ line, reason }, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line may be skipped twice, and the list never changes.
            <li key={at}>
              <span className="font-medium text-ink">Line {line}</span>{' '}
              <span className="text-soft">
                <ExactText text={reason} />
              </span>
            </li>
          ))}
          {skipped.length > shownMax && (
            <li className="text-muted">{number(skipped.length - shownMax)} more are in the file.</li>
          )}
        </ul>
      )}
      {unnamed > 0 && (
        <p className="text-xs text-muted">
          The report names the first {number(skipped.length)} skipped lines; {number(unnamed)} more were
          skipped.
        </p>
      )}
      <div className="flex flex-wrap justify-end gap-2">
        {skipped.length > 0 && (
          <Button onClick={() => save(report, file_name)}>
            <Download aria-hidden className="size-4" />
            Save the report
          </Button>
        )}
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </div>
  )
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function save({ skipped }: ImportReport, file_name: string): void {
  const rows = skipped.map(({ line, reason }) => [line, reason])
  saveFile(`skipped-${file_name}`, writeCsv([['line', 'reason'], ...rows]))
}
