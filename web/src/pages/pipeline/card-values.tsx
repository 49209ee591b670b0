/** The column values of a chat on its card: options in their colours, other values as text. */
import type { Column } from '../../data/api-types.ts'
import type { InboxChat } from '../../data/chats.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Tag } from '../../ui/face.tsx'

interface ValuesProps {
  values: InboxChat['columns']
  columns: readonly Column[]
}

export function CardValues({ values, columns }: ValuesProps) {
  return values.map(({ column_id, value }) => {
    const column = columns.find(({ id }) => id === column_id)
    return column && <ColumnValue key={column_id} column={column} value={value} />
  })
}

function ColumnValue({ column, value }: { column: Column; value: readonly string[] }) {
  const { name, type, options } = column
  if (type === 'checkbox') return value[0] === 'true' && <Tag colour="gray">{name}</Tag>
  if (type === 'select' || type === 'multi_select') {
    return value.map((each) => (
      <span key={each} title={name} className="flex max-w-full min-w-0">
        <span className="sr-only">{name}: </span>
        <Tag colour={options.find((option) => option.value === each)?.color}>{each}</Tag>
      </span>
    ))
  }
  return (
    <span title={name} className="max-w-full truncate text-soft">
      <span className="sr-only">{name}: </span>
      <ExactLine text={type === 'url' ? withoutScheme(value[0]) : (value[0] ?? '')} cut />
    </span>
  )
}

function withoutScheme(address = ''): string {
  return address.replace(/^https?:\/\//i, '')
}
