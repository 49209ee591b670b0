/** How the dashboard is built. Nothing is inlined and nothing is fetched from elsewhere: the policy of its pages allows neither. */
import { join } from 'node:path'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react(), tailwindcss()],
  logLevel: 'warn',
  build: {
    outDir: join(import.meta.dirname, 'dist'),
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'baseline-widely-available',
    reportCompressedSize: false,
  },
})
