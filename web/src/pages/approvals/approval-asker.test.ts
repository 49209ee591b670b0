import { expect, test } from 'vitest'
import { askersOf } from './approval-asker.ts'

test("an approval's headline begins with the name of the key, which its user chose", () => {
  const key = { name: 'My agent' }
  expect(askersOf({ key, client_name: 'Your bank' })).toEqual(['My agent', 'Your bank'])
  expect(askersOf({ key, client_name: null })).toEqual(['My agent'])
})
