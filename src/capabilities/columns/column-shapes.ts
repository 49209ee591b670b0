/** A column on the wire. */
import { z } from 'zod'
import { said, uuid } from '../../lib/wire.ts'
import { columnTypes } from './value-rules.ts'

export const column = z
  .object({
    id: uuid('Id of the column.'),
    name: said('Name of the column.'),
    type: z.enum(columnTypes).meta({ description: 'Type of its values.' }),
    options: z
      .array(
        z
          .object({
            value: said('The value.'),
            color: z
              .string()
              .nullable()
              .meta({ description: 'Colour of the option; null if none was chosen.' }),
          })
          .meta({ id: 'ColumnOption', description: 'An option of a select column.' }),
      )
      .meta({ description: 'Options that can be set; empty for types without options.' }),
  })
  .meta({ id: 'Column', description: 'A column of the workspace.' })
