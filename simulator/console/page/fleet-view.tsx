import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { call } from '../../../protocol/ui/call-program.ts'
import { attempt } from '../../../protocol/ui/notices.tsx'
import { ask, hubId, hubs, open, type Summary } from './store.ts'
import { useState } from 'preact/hooks'
import { QrCode } from 'lucide'
import { Icon } from '../../../protocol/ui/icon.tsx'
import type { HubLogin as Login } from '../hub-login.ts'

const worlds = signal<readonly string[]>([])
void call<string[]>('GET', 'api/worlds').then(
  (names) => void (worlds.value = names),
  () => {},
)

function stateOf({ powered, connected, controllers, faults, moving, open: doors }: Summary): string {
  if (powered === 0) return 'without power'
  const words = [`${connected} of ${controllers} boards connected`]
  if (moving > 0) words.push(`${moving} moving`)
  if (doors.length > 0) words.push(`${doors.length} doors open`)
  if (faults > 0) words.push(`${faults} faults`)
  return words.join(', ')
}

function HubCard({ summary }: { summary: Summary }): JSX.Element {
  const { hub_id, last_actuation, faults } = summary
  return (
    <li class={`card border p-3 ${hub_id === hubId.value ? 'border-primary' : 'border-base-300'}`}>
      <div class="flex items-center gap-2">
        <button class="link font-semibold grow text-left touch" onClick={() => open(hub_id)}>
          Hub {hub_id}
        </button>
        {faults > 0 && <span class="badge badge-warning badge-sm">{faults}</span>}
        <HoldButton
          class="btn-sm px-2"
          label={`Remove hub ${hub_id}`}
          onHeld={() => void attempt(`Remove hub ${hub_id}`, () => call('DELETE', `api/hubs/${hub_id}`))}
        >
          {`Remove hub ${hub_id}`}
        </HoldButton>
      </div>
      <p class="text-sm quiet">{stateOf(summary)}</p>
      <p class="text-sm quiet tabular-nums">{last_actuation} acts</p>
    </li>
  )
}

/** All hubs of this simulator, and the world of the selected one. */
export function FleetView(): JSX.Element {
  function add(event: SubmitEvent): void {
    const hub_id = Number(textsOf(event)['hub'])
    void attempt(`Add hub ${hub_id}`, () => call('POST', 'api/hubs', { hub_id, like: hubId.value }))
  }
  const world = (what: string, body: object): Promise<void> =>
    attempt(
      what,
      async () => void (worlds.value = (await ask<{ worlds: string[] }>('POST', '/world', body)).worlds),
    )
  function save(event: SubmitEvent): void {
    const { name } = textsOf(event)
    void world(`Save the world as ${name}`, { action: 'save', name })
  }
  const next = Math.max(0, ...hubs.value.map(({ hub_id }) => hub_id)) + 1
  return (
    <div class="grid gap-6 lg:grid-cols-[2fr_1fr]">
      <div>
        <ul class="grid gap-2 grid-cols-[repeat(auto-fill,minmax(12rem,1fr))]" data-fleet>
          {hubs.value.map((summary) => (
            <HubCard key={summary.hub_id} summary={summary} />
          ))}
        </ul>
        <form class="flex flex-wrap gap-2 items-end mt-3" onSubmit={add}>
          <label class="grid gap-1 text-sm">
            New hub like this one, with the number
            <input
              key={next}
              name="hub"
              type="number"
              min="1"
              defaultValue={String(next)}
              class="input input-sm w-32"
              required
            />
          </label>
          <button class="btn btn-sm">Add the hub</button>
        </form>
      </div>
      <div class="grid gap-2 content-start">
        <h2 class="font-semibold">The world of hub {hubId.value}</h2>
        <form class="flex flex-wrap gap-2 items-end" onSubmit={save}>
          <label class="grid gap-1 text-sm">
            Name
            <input name="name" pattern="[a-z0-9][a-z0-9\-]*" class="input input-sm w-40" required />
          </label>
          <button class="btn btn-sm">Save</button>
        </form>
        <div class="flex flex-wrap gap-2">
          {worlds.value.map((name) => (
            <HoldButton
              key={name}
              class="btn-sm"
              onHeld={() => void world(`Load ${name}`, { action: 'load', name })}
            >
              {`Load ${name}`}
            </HoldButton>
          ))}
          <HoldButton
            class="btn-sm btn-warning"
            label="Reset the world"
            onHeld={() => void world('Reset the world', { action: 'reset' })}
          >
            Reset
          </HoldButton>
        </div>
        <p class="quiet text-sm">
          Reset: doors closed, shelves full, boards without memory, nothing has happened.
        </p>
        <HubLogin key={hubId.value} />
      </div>
    </div>
  )
}

/** The login at the hub's own page as a QR code. It is shown only on request, because it is a key. */
function HubLogin(): JSX.Element {
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

/** Dark on white in every theme, because cameras need that. */
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
