import { describe, expect, test } from 'vitest'
import { needsName, parseTemplate, render } from './placeholders.ts'

const ada = { name: 'Ada', username: 'ada_l' }
const nobody = { name: null, username: null }

describe('personalization', () => {
  test('inserts values, and fallbacks where a value is missing', () => {
    const rendered = {
      'Hi [[name]], @[[username]]': 'Hi Ada, @ada_l',
      'Hi [[name|there]]': 'Hi Ada',
      '[[name]][[name]]': 'AdaAda',
      'Hi [[ Name ]], [[USERNAME]], [[\tname | there]]': 'Hi Ada, ada_l, Ada',
      '[[[name]]], {{{[[name]]}}}': '[Ada], {{{Ada}}}',
      'other brackets [name] {name} ]] {{}} {{first name}} {{name1}} [[name':
        'other brackets [name] {name} ]] {{}} {{first name}} {{name1}} [[name',
    }
    for (const [given, text] of Object.entries(rendered)) {
      expect(render(given, 'brackets', ada), given).toEqual({ text })
    }
    expect(render('Hi [[name|there]][[username|]]', 'brackets', nobody)).toEqual({ text: 'Hi there' })
    expect(render('Hi {{name|you}}', 'braces', { name: '  ', username: null })).toEqual({ text: 'Hi you' })
    expect(render('Hi {{ NAME|you}}, [[1]]', 'braces', ada)).toEqual({ text: 'Hi Ada, [[1]]' })
  })

  test('treats a value as text: brackets in a name are not filled', () => {
    expect(
      render('Hi [[name]]', 'brackets', { name: '[[username]] $& {{name}}', username: 'ada_l' }),
    ).toEqual({
      text: 'Hi [[username]] $& {{name}}',
    })
  })

  test("does not resolve a missing value, an unknown word, or the other document's form", () => {
    const unresolved = { fault: 'unresolved_personalization' }
    expect(render('Hi [[name]]', 'brackets', nobody)).toEqual(unresolved)
    expect(render('Hi [[nick|you]]', 'brackets', ada)).toEqual(unresolved)
    expect(render('Hi {{name}}', 'brackets', ada)).toEqual(unresolved)
    expect(render('Hi [[name]]', 'braces', ada)).toEqual(unresolved)
    expect(render('Hi {{username}}', 'braces', ada)).toEqual(unresolved)
    // No text would be left to send.
    expect(render('[[name|]]', 'brackets', nobody)).toEqual(unresolved)
    expect(parseTemplate('Hi [[name]] [[company]]', 'brackets').unknown).toBe('[[company]]')
    expect(parseTemplate('Hi {{name|x}}', 'brackets').unknown).toBe('{{name|x}}')
    expect(parseTemplate('Hi [[name]] [[username|x]] {{1}}', 'brackets').unknown).toBeUndefined()
  })

  test.each([
    '[[first name]]',
    '[[name1]]',
    '[[name|a[b]]',
    '[[name|{a]]',
    '[[]]',
    '[[ ]]',
    '[[Company]]',
    '[[na me]]',
    '[[name',
  ])('accepts only a known word between the brackets: %s', (brackets) => {
    const braces = brackets.replaceAll('[', '{').replaceAll(']', '}')
    const closed = brackets.endsWith(']]')
    expect(parseTemplate(`[[name]] ${brackets}`, 'brackets').unknown).toBe(closed ? brackets : undefined)
    expect(parseTemplate(`{{name}} ${braces}`, 'braces').unknown).toBe(closed ? braces : undefined)
  })

  test.each(['name', ' Name ', 'NAME|x', 'username', 'name|a[b', 'name|{{x'])(
    "refuses a word in the other document's form in any spelling: %s",
    (inside) => {
      expect(parseTemplate(`Hi [[name]] {{${inside}}}`, 'brackets').unknown).toBe(`{{${inside}}}`)
      expect(parseTemplate(`Hi {{name}} [[${inside}]]`, 'braces').unknown).toBe(`[[${inside}]]`)
      expect(parseTemplate(`{{ open, {{${inside}}}`, 'brackets').unknown).toBeDefined()
    },
  )

  test('limits the length in code points, values included', () => {
    const name = '😀'.repeat(10)
    expect(render(`${'x'.repeat(4_086)}[[name]]`, 'brackets', { ...ada, name })).toHaveProperty('text')
    expect(render(`${'x'.repeat(4_087)}[[name]]`, 'brackets', { ...ada, name })).toEqual({
      fault: 'text_too_long',
    })
  })

  test('needs the name only where the text has no fallback for it', () => {
    expect(needsName(parseTemplate('Hi {{name}}', 'braces'))).toBe(true)
    expect(needsName(parseTemplate('Hi {{name|there}} {name}', 'braces'))).toBe(false)
  })

  test('takes no longer for a text full of open brackets', () => {
    const text = '[[a|{{a|'.repeat(512)
    expect(render(text, 'brackets', ada)).toEqual({ text })
  })
})
