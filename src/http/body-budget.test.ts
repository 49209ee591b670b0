import { expect, test } from 'vitest'
import { BodyBudget } from './body-budget.ts'

/** Bodies of sources `a`, `b`, …: each is named after its source, such as `a1`. */
function open(eachMax: number, allMax: number) {
  const budget = new BodyBudget({ eachMax, allMax })
  const refused: string[] = []
  const body = (name: string) => budget.open(name.slice(0, 1), () => refused.push(name))
  return { body, refused }
}

test('a source that has more than its share loses the largest of its bodies that are still arriving', () => {
  const { body, refused } = open(10, 100)
  const [small, large, other] = [body('a1'), body('a2'), body('b1')]
  small.take(3)
  large.take(7)
  other.take(10)
  expect(refused).toEqual([])
  small.take(1)
  expect(refused).toEqual(['a2'])
  // What arrives for it later does not count.
  large.take(100)
  small.take(6)
  expect(refused).toEqual(['a2'])
  small.take(1)
  expect(refused).toEqual(['a2', 'a1'])
})

test('at the limit of the process the source with the most gives way, not the one that asks', () => {
  const { body, refused } = open(100, 20)
  const [one, other] = [body('a1'), body('a2')]
  one.take(6)
  other.take(7)
  const late = body('b1')
  late.take(7)
  expect(refused).toEqual([])
  late.take(1)
  expect(refused).toEqual(['a2'])
})

test('a body that is whole is not refused, and counts until its answer is finished', () => {
  const { body, refused } = open(10, 100)
  const whole = body('a1')
  whole.take(9)
  whole.arrived()
  const late = body('a2')
  late.take(2)
  expect(refused).toEqual(['a2'])
  whole.release()
  whole.release()
  body('a3').take(10)
  expect(refused).toEqual(['a2'])
  body('a4').take(11)
  expect(refused).toEqual(['a2', 'a4'])
})

test('whole bodies of some sources leave a reserve for those that have little', () => {
  const { body, refused } = open(8, 32)
  for (const name of ['a1', 'b1', 'c1']) {
    const whole = body(name)
    whole.take(8)
    whole.arrived()
  }
  const [greedy, other, last] = [body('d1'), body('e1'), body('f1')]
  greedy.take(2)
  other.take(2)
  expect(refused).toEqual([])
  greedy.take(1)
  expect(refused).toEqual(['d1'])
  last.take(2)
  for (const name of ['g1', 'h1']) body(name).take(2)
  expect(refused).toEqual(['d1'])
  // The reserve has an end.
  body('i1').take(1)
  expect(refused).toHaveLength(2)
})

test('if all bodies of the source with the most are whole, the next source gives way', () => {
  const { body, refused } = open(100, 20)
  const whole = body('a1')
  whole.take(15)
  whole.arrived()
  body('b1').take(3)
  body('c1').take(4)
  expect(refused).toEqual(['c1'])
})
