import { counted } from '../../../protocol/model/counted.ts'
import { effect, signal } from '@preact/signals'
import { BellRing } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { say } from '../../../protocol/ui/notices.tsx'
import { incidentsOf, type Incident } from './alarms.tsx'
import { showDevice } from './show.ts'
import { hardware, state } from './store.ts'

/** The latest new incidents as text for screen readers. */
const announced = signal('')
let known: ReadonlySet<string> | undefined

/** Puts the number of incidents into the window's title, and announces each new incident. */
effect(() => {
  const is = state.value
  if (!is) return
  const incidents = incidentsOf(is)
  const name = hardware.value ? `Hub ${hardware.value.hubId}` : 'Larder hub'
  document.title = incidents.length === 0 ? name : `(${incidents.length}) ${name}`
  const fresh = known === undefined ? [] : incidents.filter(({ key }) => !known!.has(key))
  known = new Set(incidents.map(({ key }) => key))
  if (fresh.length > 0) announce(fresh, name)
})

function announce(fresh: readonly Incident[], name: string): void {
  announced.value = fresh.map(({ title }) => title).join('. ')
  for (const { title, place } of fresh.slice(-2))
    say(title, true, place && { label: 'Show it', run: () => showDevice(place.device, place.row) })
  if (!document.hidden || !mayNotify()) return
  for (const { title, remedy, key } of fresh) void notify(`${name}: ${title}`, { body: remedy, tag: key })
}

/** Browsers on telephones show only notifications of a service worker, which also handles their clicks. */
async function notify(title: string, options: NotificationOptions): Promise<void> {
  const worker = await navigator.serviceWorker.getRegistration()
  if (worker?.active) return worker.showNotification(title, options)
  const notification = new Notification(title, options)
  notification.addEventListener('click', () => window.focus())
}

/** Screen readers announce it after each change. */
export const Announcer = (): JSX.Element => (
  <p class="sr-only" role="alert" data-announced>
    {announced.value}
  </p>
)

/** Browsers support notifications on secure pages only: with TLS, or on the machine itself. */
const canNotify = (): boolean => isSecureContext && 'Notification' in globalThis
const mayNotify = (): boolean => canNotify() && Notification.permission === 'granted'
const isAllowed = signal(mayNotify())

/** Requests permission for browser notifications, for alarms while another page is in front. */
export function NotifyButton(): JSX.Element | null {
  if (!canNotify() || Notification.permission === 'denied') return null
  if (isAllowed.value) return <p class="quiet text-sm">This browser notifies you of alarms.</p>
  return (
    <button
      class="btn btn-sm justify-self-start"
      onClick={() => void Notification.requestPermission().then(() => (isAllowed.value = mayNotify()))}
    >
      <Icon icon={BellRing} /> Notify me of alarms in this browser
    </button>
  )
}

/** Number of incidents as a link to their cards; hidden if there are none. */
export function AlarmBadge(): JSX.Element | null {
  const count = state.value ? incidentsOf(state.value).length : 0
  if (count === 0) return null
  return (
    <button
      class="btn btn-sm btn-error"
      aria-label={`${counted(count, 'alarm')}: show`}
      data-badge={count}
      onClick={() => {
        const section = document.getElementById('alarms')
        section?.scrollIntoView({ block: 'start' })
        section?.focus({ preventScroll: true })
      }}
    >
      {count}
    </button>
  )
}
