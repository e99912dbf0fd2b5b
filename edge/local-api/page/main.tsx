import { LogOut, PackageOpen } from 'lucide'
import { type JSX, render } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { Notices } from '../../../protocol/ui/notices.tsx'
import { PictureLegend } from '../../../protocol/ui/picture-cabinet.tsx'
import { Picture } from '../../../protocol/ui/picture.tsx'
import { keepSteady } from '../../../protocol/ui/steady.ts'
import { pictureColumns, ThemeButton } from '../../../protocol/ui/theme.tsx'
import { AcceptanceView } from './acceptance.tsx'
import { Alarms } from './alarms.tsx'
import { AlarmBadge, Announcer } from './announce.tsx'
import { DevicePanel } from './device-panel.tsx'
import { HubPanel } from './hub-panel.tsx'
import { RefillView } from './refill.tsx'
import { showDevice, showWholeHub } from './show.ts'
import {
  hardware,
  receivedAt,
  isConnected,
  login,
  person,
  picture,
  selected,
  signIn,
  signOut,
  state,
  storageProblem,
  view,
} from './store.ts'
import { syncText } from './texts.ts'
import workerUrl from './page-worker.ts?worker&url'

/**
 * Caches the page's own files, so that a reload without network works. Browsers allow that on secure pages
 * only: with TLS, or on the machine itself.
 */
async function keepOffline(): Promise<void> {
  if (!isSecureContext || !('serviceWorker' in navigator)) return
  try {
    await navigator.serviceWorker.register(workerUrl, { scope: './' })
    const files = [
      ...document.querySelectorAll<HTMLScriptElement | HTMLLinkElement>('script[src], link[href]'),
    ]
    const cache = await caches.open('page')
    const wanted = files.map((file) => ('src' in file ? file.src : file.href))
    await cache.addAll(['./', ...wanted])
    // Files of an earlier version of the page are deleted.
    for (const { url } of await cache.keys())
      if (!wanted.includes(url) && new URL(url).pathname !== '/') await cache.delete(url)
  } catch {
    // A browser without caching shows the page only while the network works.
  }
}

/** The page shows an old state: the header contains its age. */
function awayWords(): string {
  const at = receivedAt.value
  return at === null ? 'away' : `away since ${new Date(at).toLocaleTimeString([], { timeStyle: 'short' })}`
}

function Header(): JSX.Element {
  const sync = state.value && syncText(state.value.sync)
  return (
    <header class="print:hidden sticky top-0 z-10 flex items-center bg-base-100 border-b border-base-300 gap-2 px-3 min-h-14">
      <h1 class="text-base font-semibold flex items-center gap-2 grow min-w-0">
        <Icon icon={PackageOpen} /> {hardware.value ? `Hub ${hardware.value.hubId}` : 'Larder hub'}
      </h1>
      {login.value === 'there' && (
        <span class="text-sm flex items-center gap-1" data-connected={isConnected.value}>
          <span
            class={`status ${!isConnected.value ? 'status-error' : sync?.isGood ? 'status-success' : 'status-warning'}`}
          />
          {!isConnected.value ? awayWords() : sync?.isGood ? 'cloud' : 'no cloud'}
        </span>
      )}
      {login.value === 'there' && person.value !== null && (
        <span class="text-sm truncate max-w-24" data-person>
          {person.value}
        </span>
      )}
      {login.value === 'there' && <AlarmBadge />}
      <ThemeButton />
      {login.value === 'there' && (
        <button class="btn btn-ghost btn-square btn-sm" aria-label="Log out" onClick={() => void signOut()}>
          <Icon icon={LogOut} />
        </button>
      )}
    </header>
  )
}

function Login(): JSX.Element {
  return (
    <form
      class="card bg-base-100 p-4 mx-auto max-w-md w-full grid gap-3"
      onSubmit={(event) => {
        const { token: secret = '', name = '' } = textsOf(event)
        void signIn(secret.trim(), name.trim())
      }}
    >
      <h2 class="text-lg font-semibold">Log in at this hub</h2>
      {storageProblem.value && (
        <p class="alert alert-error alert-soft text-base-content" role="alert" data-storage>
          {storageProblem.value}
        </p>
      )}
      <label class="grid gap-1 text-sm">
        Your name
        <input name="name" autocomplete="username" maxLength={60} class="input w-full" />
      </label>
      <label class="grid gap-1 text-sm">
        Your PIN
        <input name="token" type="password" autocomplete="current-password" class="input w-full" required />
        <span class="quiet">
          For the first set-up: the hub’s token, from the file of its store that ends with .token
        </span>
      </label>
      <button class="btn btn-primary">Log in</button>
    </form>
  )
}

/** A second touch closes a device; a touch on a row of a cabinet opens it for a count. */
function select(id: string, row?: string): void {
  if (selected.value === id && row === undefined) return showWholeHub()
  showDevice(id, row && `${id.slice('cabinet-'.length)}/${row}`)
}

function Hub(): JSX.Element {
  const shown = picture.value
  if (!shown || !state.value) return <p class="quiet p-4">The hub answers …</p>
  if (view.value === 'acceptance') return <AcceptanceView />
  if (view.value === 'refill') return <RefillView />
  return (
    <div class="grid gap-3 lg:grid-cols-[minmax(0,1fr)_26rem] items-start">
      <div class="lg:col-span-2 min-w-0">
        <Alarms />
      </div>
      <section class="card bg-base-100 p-3 min-w-0" aria-label="Picture">
        <Picture picture={shown} columns={pictureColumns()} selected={selected.value} onSelect={select} />
        <PictureLegend />
      </section>
      <aside id="device" class="card bg-base-100 p-4 min-w-0 scroll-mt-16" aria-label="Device">
        {selected.value === null ? <HubPanel /> : <DevicePanel id={selected.value} />}
      </aside>
    </div>
  )
}

function Page(): JSX.Element {
  return (
    <div class="min-h-screen bg-base-200 print:bg-white text-base-content">
      <Header />
      <main class="mx-auto max-w-[110rem] p-3">
        {login.value === 'needed' ? <Login /> : login.value === 'there' ? <Hub /> : null}
      </main>
      <Announcer />
      <Notices />
    </div>
  )
}

const place = document.getElementById('page')!
render(<Page />, place)
keepSteady(place.querySelector('main')!)
void keepOffline()
