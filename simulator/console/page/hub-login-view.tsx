import { useState } from 'preact/hooks'
import { QrCode } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { attempt } from '../../../protocol/ui/notices.tsx'
import type { HubLogin as Login } from '../hub-login.ts'
import { ask, hubId } from './store.ts'

/** The hub's own page: a telephone that reads the code is logged in there. Shown when it is asked for: it is a key. */
export function HubLogin(): JSX.Element {
  const [login, setLogin] = useState<Login | null>(null)
  const show = (): void =>
    void attempt('Show the login', async () => setLogin(await ask<Login>('GET', '/login')))
  return (
    <section class="grid gap-2 border-t border-base-300 pt-3" aria-label="The hub’s own page">
      <h2 class="font-semibold">The own page of hub {hubId.value}</h2>
      {login === null ? (
        <button class="btn btn-sm justify-self-start" onClick={show}>
          <Icon icon={QrCode} /> Show its login as a QR code
        </button>
      ) : (
        <>
          <Code code={login.code} />
          <a class="link text-sm break-all" href={login.link} target="_blank" rel="noreferrer">
            Log in on this device
          </a>
          <button class="btn btn-sm justify-self-start" onClick={() => setLogin(null)}>
            Hide it
          </button>
        </>
      )}
    </section>
  )
}

/** Dark on white whatever the theme: that is what cameras read. */
function Code({ code }: { code: readonly string[] }): JSX.Element {
  const dark = code.flatMap((row, y) =>
    Array.from(row).flatMap((module, x) => (module === '1' ? `M${x} ${y}h1v1h-1z` : [])),
  )
  return (
    <svg
      class="w-56 max-w-full rounded"
      viewBox={`0 0 ${code.length} ${code.length}`}
      shape-rendering="crispEdges"
      role="img"
      aria-label="QR code: the login of the hub’s own page"
      data-qr
    >
      <rect width={code.length} height={code.length} fill="#fff" />
      <path d={dark.join('')} fill="#000" />
    </svg>
  )
}
