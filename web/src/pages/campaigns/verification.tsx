/** Whether the campaign's records agree with the ledger, in the service's own words. */
import { useQuery } from '@tanstack/react-query'
import { Check, X } from 'lucide-react'
import { type CampaignRef, verificationQuery } from '../../data/campaigns.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Late, Loading } from '../../ui/states.tsx'
import { ClockTime } from '../../ui/time.tsx'

export function Verification({ at }: { at: CampaignRef }) {
  const { data, error, isFetching, refetch } = useQuery(verificationQuery(at))
  return (
    <>
      <div className="mb-2 flex items-center gap-2">
        <h2 className={`text-sm font-semibold ${data?.ok === false ? 'text-danger' : ''}`}>
          {!data && 'The records'}
          {data && (data.ok ? 'The records agree' : 'The records disagree')}
        </h2>
        {data && (
          <p className="text-muted" role="status">
            checked <ClockTime at={data.checked_at} />
          </p>
        )}
        <Button
          kind="quiet"
          size="small"
          className="-my-1 ml-auto"
          busy={isFetching}
          onClick={() => void refetch()}
        >
          Check again
        </Button>
      </div>
      {error && <Failure error={error} />}
      {!data && !error && (
        <Late>
          <Loading rows={2} />
        </Late>
      )}
      <ul className="grid gap-1.5">
        {data?.checks.map(({ name, ok, detail }) => (
          <li key={name} className={`flex gap-2 ${ok ? 'text-soft' : 'text-danger'}`}>
            {ok ? (
              <Check aria-label="Passed" className="mt-0.5 size-4 shrink-0 text-accent" />
            ) : (
              <X aria-label="Failed" className="mt-0.5 size-4 shrink-0" />
            )}
            <span className="min-w-0 [overflow-wrap:anywhere]">{detail}</span>
          </li>
        ))}
      </ul>
    </>
  )
}
