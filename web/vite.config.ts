/** How the dashboard is built. Nothing is inlined and nothing is fetched from elsewhere: the policy of its pages allows neither. */
import { join } from 'node:path'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const source = join(import.meta.dirname, 'src')
const entry = join(source, 'main.tsx')

interface Modules {
  getModuleInfo(id: string): { importers: readonly string[] } | null
}

/** Whether the entry imports it, directly or through others, and not only on demand. */
function isOfFrame(id: string, modules: Modules, seen = new Set<string>()): boolean {
  if (id === entry) return true
  if (seen.has(id)) return false
  seen.add(id)
  const importers = modules.getModuleInfo(id)?.importers ?? []
  return importers.some((each) => isOfFrame(each, modules, seen))
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react(), tailwindcss()],
  logLevel: 'warn',
  build: {
    outDir: join(import.meta.dirname, 'dist'),
    assetsInlineLimit: 0,
    modulePreload: {
      polyfill: false,
      // A page is asked for with all that it imports. What opens on a page waits for one request more: lists of names with hashes hardly
      // compress, and every page would carry those of its dialogs.
      resolveDependencies: (_, files, { hostId, hostType }) =>
        hostType === 'html' || hostId.includes('part-frame') ? files : [],
    },
    target: 'baseline-widely-available',
    reportCompressedSize: false,
    // Of every package whose code is in a page. web/build.ts adds those of styles and fonts.
    license: { fileName: 'licenses.txt' },
    rolldownOptions: {
      output: {
        // A page keeps its name; an icon can have the same one.
        chunkFileNames: ({ isDynamicEntry }) => `assets/${isDynamicEntry ? '' : 'part-'}[name]-[hash].js`,
        codeSplitting: {
          groups: [
            // Every page loads these together: one file compresses better than thirty.
            {
              name: (id, modules) => (id.startsWith(source) && isOfFrame(id, modules) ? 'frame' : null),
            },
          ],
        },
      },
    },
  },
})
