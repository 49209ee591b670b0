/** The requests of one object, for a shell or in TypeScript. Loaded when it is first opened. */
import { useState } from 'react'
import { useSession } from '../data/place.ts'
import { type ApiRequest, curlOf, typescriptOf } from './as-api-text.ts'
import { Button } from './button.tsx'
import { Code } from './copy.tsx'
import { Dialog } from './dialog.tsx'

const languages = { curl: curlOf, TypeScript: typescriptOf } as const
type Language = keyof typeof languages

interface AsApiDialogProps {
  of: string
  requests: readonly ApiRequest[]
  onClose: () => void
}

export function AsApiDialog({ of, requests, onClose }: AsApiDialogProps) {
  const { base_url } = useSession()
  const [language, setLanguage] = useState<Language>('curl')
  return (
    <Dialog
      open
      onClose={onClose}
      title={`${of} as API`}
      description={
        <>
          The key comes from <code className="font-mono text-xs">PARLEY_API_KEY</code>. Create one under API
          keys.
        </>
      }
    >
      <fieldset className="mb-4 flex gap-1">
        <legend className="sr-only">Language</legend>
        {(Object.keys(languages) as Language[]).map((each) => (
          <Button
            key={each}
            size="small"
            kind={each === language ? 'secondary' : 'quiet'}
            aria-pressed={each === language}
            onClick={() => setLanguage(each)}
          >
            {each}
          </Button>
        ))}
      </fieldset>
      <div className="-mx-6 grid min-h-0 auto-rows-max gap-3 overflow-y-auto px-6 py-0.5">
        {requests.map((request) => (
          <Code key={request.does} label={request.does} text={languages[language](base_url, request)} />
        ))}
      </div>
    </Dialog>
  )
}
