/** What the browser's tab shows. */
import { useEffect } from 'react'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title.endsWith('Parley') ? title : `${title} · Parley`
  }, [title])
}
