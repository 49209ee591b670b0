/** The frame of a page before it is known who is signed in, so that a cold page shows at once where everything will be. */
import { Late, Loading } from '../ui/states.tsx'
import { Mark } from './side-bar.tsx'

export function ColdFrame() {
  return (
    <div data-cold className="min-h-dvh lg:grid lg:grid-cols-[208px_minmax(0,1fr)]">
      <aside
        aria-label="Side bar"
        className="sticky top-0 hidden h-dvh border-r border-line p-2.5 pt-4 lg:block"
      >
        <Mark />
      </aside>
      <header className="sticky top-0 flex h-14 items-center border-b border-line bg-canvas px-5 lg:hidden">
        <Mark />
      </header>
      <main className="min-w-0 bg-surface p-5">
        <Late>
          <Loading />
        </Late>
      </main>
    </div>
  )
}
