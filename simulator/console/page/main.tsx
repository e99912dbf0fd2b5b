import { signal } from '@preact/signals'
import { Boxes, CirclePause, Cpu, History, ListChecks, Radio, TriangleAlert } from 'lucide'
import type { IconNode } from 'lucide'
import { type JSX, render } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { Notices } from '../../../protocol/ui/notices.tsx'
import { PictureLegend } from '../../../protocol/ui/picture-cabinet.tsx'
import { focusDevice, Picture } from '../../../protocol/ui/picture.tsx'
import { keepSteady } from '../../../protocol/ui/steady.ts'
import { pictureColumns, ThemeButton } from '../../../protocol/ui/theme.tsx'
import { DevicePanel } from './device-panel.tsx'
import { FaultsView } from './faults-view.tsx'
import { FleetView } from './fleet-view.tsx'
import { ActsView } from './acts-view.tsx'
import { ScenariosView } from './scenarios-view.tsx'
import { hubId, hubs, isConnected, open, picture, selected, state } from './store.ts'
import { WireView } from './wire-view.tsx'

const views: readonly { name: string; icon: IconNode; show: () => JSX.Element }[] = [
  { name: 'What happened', icon: History, show: () => <ActsView /> },
  { name: 'Faults', icon: TriangleAlert, show: () => <FaultsView /> },
  { name: 'The wire', icon: Radio, show: () => <WireView /> },
  { name: 'Scenarios', icon: ListChecks, show: () => <ScenariosView /> },
  { name: 'Hubs and worlds', icon: Boxes, show: () => <FleetView /> },
]
const view = signal(views[0]!.name)

function Header(): JSX.Element {
  return (
    <header class="flex items-center bg-base-100 border-b border-base-300 gap-2 px-3 min-h-14">
      <h1 class="text-base sm:text-lg font-semibold flex items-center gap-2 grow min-w-0">
        <Icon icon={Cpu} /> Larder simulator
      </h1>
      <span class="text-sm flex items-center gap-1" data-connected={isConnected.value}>
        <span class={`status ${isConnected.value ? 'status-success' : 'status-error'}`} />
        {isConnected.value ? 'live' : 'away'}
      </span>
      <label class="flex items-center gap-2 text-sm">
        <span class="sr-only">Hub</span>
        <select
          class="select select-sm w-24"
          value={hubId.value ?? ''}
          onChange={(event) => open(Number(event.currentTarget.value))}
        >
          {hubs.value.map(({ hub_id }) => (
            <option key={hub_id} value={hub_id}>
              hub {hub_id}
            </option>
          ))}
        </select>
      </label>
      <ThemeButton />
    </header>
  )
}

/**
 * Selects a device; a second touch closes it. Its panel gets the keyboard focus; on a telephone it is below the
 * picture.
 */
function select(id: string): void {
  if (selected.value === id) return showWholeHub()
  selected.value = id
  requestAnimationFrame(() => {
    const panel = document.getElementById('device')
    panel?.querySelector<HTMLElement>('h2')?.focus({ preventScroll: true })
    if (pictureColumns() === 2) panel?.scrollIntoView({ block: 'start' })
  })
}

/** Closes the panel of a device; the keyboard focus returns to the device in the picture. */
function showWholeHub(): void {
  const id = selected.value
  selected.value = null
  if (id !== null) focusDevice(id)
}

function Page(): JSX.Element {
  const shown = picture.value
  const current = views.find(({ name }) => name === view.value)!
  return (
    <div class="min-h-screen bg-base-200 text-base-content">
      <Header />
      <main class="mx-auto max-w-[110rem] p-3 grid gap-3 lg:grid-cols-[minmax(0,1fr)_25rem]">
        <section class="card bg-base-100 p-3 min-w-0" aria-label="Picture">
          {shown ? (
            <>
              <Picture
                picture={shown}
                columns={pictureColumns()}
                selected={selected.value}
                onSelect={select}
              />
              <PictureLegend />
            </>
          ) : (
            <p class="quiet flex items-center gap-2">
              <Icon icon={CirclePause} /> No hub is simulated.
            </p>
          )}
        </section>
        <aside
          id="device"
          class="card bg-base-100 p-4 min-w-0"
          aria-label="Device"
          onKeyDown={(event) => {
            // On the heading, the keys that opened the device also close it.
            const closes = event.target instanceof HTMLHeadingElement ? [' ', 'Enter', 'Escape'] : ['Escape']
            if (!closes.includes(event.key)) return
            event.preventDefault()
            showWholeHub()
          }}
        >
          {state.value && <DevicePanel />}
        </aside>
        <section class="card bg-base-100 p-3 min-w-0 lg:col-span-2">
          <nav class="flex flex-wrap gap-1 mb-3" aria-label="Views">
            {views.map(({ name, icon }) => (
              <button
                key={name}
                class={`btn btn-sm ${name === view.value ? 'btn-primary' : 'btn-ghost'}`}
                aria-current={name === view.value ? 'page' : undefined}
                onClick={() => void (view.value = name)}
              >
                <Icon icon={icon} /> {name}
              </button>
            ))}
          </nav>
          {current.show()}
        </section>
      </main>
      <Notices />
    </div>
  )
}

const place = document.getElementById('page')!
render(<Page />, place)
keepSteady(place.querySelector('main')!)
