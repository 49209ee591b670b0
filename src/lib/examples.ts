/**
 * What the examples of the reference refer to. The demo creates exactly these, so that every example works there as
 * printed. They exist nowhere else.
 */
export const exampleAccountId = 'acc_2Jk9vQ7wXb4LmN8pRt3Z'
export const exampleColumnId = '0199a1f0-0000-7000-8000-00000000000a'
/** Their chat is `platform:chat:42`. */
export const examplePerson = { person_id: 42, name: 'Ines García', username: 'ines_garcia' }
