/** A QR code, dark on white in both themes: many cameras cannot read the reverse. */
import { encode } from 'uqr'

export function QrCode({ text }: { text: string }) {
  const { data, size } = encode(text, { border: 0, ecc: 'M' })
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  return (
    <div className="mx-auto size-58 rounded-2xl bg-[#ffffff] p-4 ring-1 ring-line">
      <svg
        role="img"
        aria-label="QR code to scan with the phone of this account"
        viewBox={`0 0 ${size} ${size}`}
        className="size-full fill-[#12191b]"
        shapeRendering="crispEdges"
      >
        <path d={path} />
      </svg>
    </div>
  )
}
