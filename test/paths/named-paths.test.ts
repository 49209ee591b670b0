import { expect, test } from 'vitest'
import { findMissing } from './named-paths.ts'

const tree: Readonly<Record<string, string>> = {
  'src/http/doors.ts':
    '// See ports.ts and `src/http/ports.ts`, then gone.ts.\nconst text = "src/gone.ts" // and src'.concat(
      '/lost',
    ),
  'src/http/ports.ts':
    '/**\n * As `http/doors.ts` and test/old/run.ts do,\n * https://example.com/a.ts too.\n */\nexport {}',
  'src/db/migrations/0001_a.sql': '-- It was made for lib/then.ts.',
  'deploy/run.sh': '# Starts src/http and src/web.\necho src/nowhere.ts',
  'docs/guide.md':
    'See [code](../src/http/doors.ts), ../src/none.ts, `src/<slice>/x.ts`, `src/*.ts`.\n```sh\ncat mine.json\n```\n',
  'CHANGELOG.md': 'src/former.ts is gone.',
}

test('a path of a comment or of a page that no file has is found, with its place', () => {
  const found = findMissing(Object.keys(tree), (file) => tree[file] ?? '')
  expect(found.map(({ file, line, path }) => `${file}:${line} ${path}`)).toEqual([
    'src/http/doors.ts:1 gone.ts',
    'src/http/doors.ts:2 src/lost',
    'src/http/ports.ts:2 test/old/run.ts',
    'deploy/run.sh:1 src/web',
    'docs/guide.md:1 ../src/none.ts',
  ])
})
