/** A field above the list of what it finds. The arrows choose, Enter or a click takes what is chosen. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { Fragment, type ReactNode } from 'react'

interface FinderProps<Item> {
  label: string
  placeholder: string
  lengthMax?: number
  /** The user has just asked for the field. */
  autoFocus?: boolean
  text: string
  onFind: (text: string) => void
  fieldClass: string
  /** Right of the field. */
  beside?: ReactNode
  /** Between field and list. */
  note: ReactNode
  listLabel: string
  items: readonly Item[]
  keyOf: (item: Item) => string
  /** Above the item, where a group begins. */
  headingOf?: (item: Item, before: Item | undefined) => string | undefined
  itemClass: string
  onChoose: (item: Item) => void
  /** One item. */
  children: (item: Item) => ReactNode
}

export function Finder<Item>(props: FinderProps<Item>) {
  const { items, keyOf, headingOf, onFind, onChoose, children } = props
  return (
    <Autocomplete.Root
      inline
      open
      mode="none"
      autoHighlight="always"
      keepHighlight
      items={items}
      value={props.text}
      // What is taken is not written into the field.
      onValueChange={(text, { reason }) => reason !== 'item-press' && onFind(text)}
    >
      <div className="flex shrink-0 items-center gap-1.5 border-b border-line">
        <Autocomplete.Input
          autoFocus={props.autoFocus}
          aria-label={props.label}
          placeholder={props.placeholder}
          maxLength={props.lengthMax}
          className={`min-w-0 flex-1 bg-transparent outline-none ${props.fieldClass}`}
        />
        {props.beside}
      </div>
      {props.note}
      <Autocomplete.List
        aria-label={props.listLabel}
        className="min-h-0 overflow-y-auto p-1.5 outline-none empty:hidden"
      >
        {items.map((item, index) => {
          const heading = headingOf?.(item, items[index - 1])
          return (
            <Fragment key={keyOf(item)}>
              {heading !== undefined && (
                <p role="presentation" className="px-2.5 pt-2 pb-1 text-xs font-medium text-muted">
                  {heading}
                </p>
              )}
              <Autocomplete.Item
                value={item}
                index={index}
                onClick={() => onChoose(item)}
                // Screen readers expect that the chosen one is selected.
                render={(option, { highlighted }) => (
                  // biome-ignore lint/a11y/useAriaPropsSupportedByRole: the role is among the props.
                  <div {...option} aria-selected={highlighted} />
                )}
                className={`group cursor-pointer rounded-lg px-2.5 data-highlighted:bg-hover ${props.itemClass}`}
              >
                {children(item)}
              </Autocomplete.Item>
            </Fragment>
          )
        })}
      </Autocomplete.List>
    </Autocomplete.Root>
  )
}
