import {
  BadgePercent,
  ChartColumn,
  House,
  KeyRound,
  LayoutGrid,
  LogOut,
  Menu,
  PackageOpen,
  Receipt,
  ScrollText,
  Store,
  UserRound,
  Users,
  Webhook,
  Wrench,
} from 'lucide'
import type { IconNode } from 'lucide'
import { type JSX, render } from 'preact'
import { ignoreHeldEnter } from '../../../protocol/ui/hold-button.tsx'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { Notices, say } from '../../../protocol/ui/notices.tsx'
import { ThemeButton } from '../../../protocol/ui/theme.tsx'
import { type ConsolePath, consolePlaceOf } from '../../../protocol/model/console-places.ts'
import type { Scope } from '../../../protocol/model/scopes.ts'
import { AccountPage } from './account.tsx'
import { address } from './address.ts'
import { AuditPage } from './audit.tsx'
import { ContactAnswerPage } from './contacts.tsx'
import { keepCurrent } from './data.ts'
import { DealsPage } from './deals.tsx'
import { HubPage } from './hub.tsx'
import { MaintenancePage } from './maintenance.tsx'
import { OrderPage } from './order.tsx'
import { OrdersPage } from './orders.tsx'
import { Heading, HubPick, Link, Missing } from './parts.tsx'
import { InvitationPage, SignIn } from './passkey.tsx'
import { KeysPage, PeoplePage } from './people.tsx'
import { PlanogramPage } from './planogram.tsx'
import { SalesPage } from './sales.tsx'
import { awaySince, can, hasExpired, isSignedIn, session } from './session.ts'
import { enter, signOut } from './sign-in.ts'
import { TodayPage } from './today.tsx'
import { WebhooksPage } from './webhooks.tsx'

interface PageEntry {
  to: ConsolePath
  show: (props: { id: number }) => JSX.Element
  scope: Scope
  name: string
  /** Absent: it is reached from other pages only. */
  icon?: IconNode
}

const pages: readonly PageEntry[] = [
  { to: '/today', show: TodayPage, scope: 'hubs:read', name: 'Today', icon: House },
  { to: '/hubs', show: () => <HubPick to="/hubs" />, scope: 'hubs:read', name: 'Hubs', icon: Store },
  { to: '/hubs/:id', show: HubPage, scope: 'hubs:read', name: 'Hub' },
  {
    to: '/planogram',
    show: () => <HubPick to="/planogram" />,
    scope: 'inventory:read',
    name: 'Planogram',
    icon: LayoutGrid,
  },
  { to: '/planogram/:id', show: PlanogramPage, scope: 'inventory:read', name: 'Planogram' },
  { to: '/orders', show: OrdersPage, scope: 'orders:read', name: 'Orders', icon: Receipt },
  { to: '/orders/:id', show: OrderPage, scope: 'orders:read', name: 'Order' },
  { to: '/sales', show: SalesPage, scope: 'analytics:read', name: 'Sales', icon: ChartColumn },
  {
    to: '/deals',
    show: DealsPage,
    scope: 'promotions:read',
    name: 'Deals and banners',
    icon: BadgePercent,
  },
  { to: '/maintenance', show: MaintenancePage, scope: 'maintenance:read', name: 'Maintenance', icon: Wrench },
  { to: '/webhooks', show: WebhooksPage, scope: 'events:read', name: 'Webhooks', icon: Webhook },
  { to: '/people', show: PeoplePage, scope: 'people:read', name: 'People', icon: Users },
  { to: '/keys', show: KeysPage, scope: 'people:read', name: 'API keys', icon: KeyRound },
  { to: '/audit', show: AuditPage, scope: 'hubs:read', name: 'Audit', icon: ScrollText },
  { to: '/account', show: AccountPage, scope: 'hubs:read', name: 'Account', icon: UserRound },
]

/** The page of a path, and the number in it. */
function pageAt(path: string): { page: PageEntry; id: number } | undefined {
  const { place, id } = consolePlaceOf(path) ?? {}
  const page = pages.find(({ to }) => to === (id === undefined ? `/${place}` : `/${place}/:id`))
  return page && { page, id: id ?? NaN }
}

function Navigation(): JSX.Element {
  const { path } = address.value
  return (
    <ul class="menu w-full p-1 gap-0.5">
      {pages.map(({ name, icon, to, scope }) => {
        if (!icon || !can(scope)) return null
        const isCurrent = `${path === '' ? '/today' : path}/`.startsWith(`${to}/`)
        return (
          <li key={to}>
            <Link to={to} isCurrent={isCurrent} class={`touch ${isCurrent ? 'menu-active' : ''}`}>
              <Icon icon={icon} /> {name}
            </Link>
          </li>
        )
      })}
    </ul>
  )
}

async function leave(): Promise<void> {
  try {
    await signOut()
  } catch (error) {
    say(`You are still signed in: ${(error as Error).message}`, true)
  }
}

function Header(): JSX.Element {
  const away = awaySince.value
  return (
    <header class="sticky top-0 z-10 flex items-center bg-base-100 border-b border-base-300 gap-2 px-3 min-h-14">
      {isSignedIn() && (
        <details
          class="dropdown lg:hidden"
          onClick={({ currentTarget, target }) => {
            if (target instanceof Element && target.closest('a')) currentTarget.open = false
          }}
        >
          <summary class="btn btn-ghost btn-square" aria-label="Menu">
            <Icon icon={Menu} />
          </summary>
          <nav class="dropdown-content bg-base-100 rounded-box shadow-lg w-60 z-20 mt-1" aria-label="Pages">
            <Navigation />
          </nav>
        </details>
      )}
      <p class="font-semibold flex items-center gap-2 grow min-w-0">
        <Icon icon={PackageOpen} /> <span class={away === null ? '' : 'hidden sm:inline'}>Larder</span>
      </p>
      {isSignedIn() && (
        <>
          <span
            class="text-sm flex items-center gap-1 whitespace-nowrap"
            role="status"
            data-connected={away === null}
          >
            <span class={`status ${away === null ? 'status-success' : 'status-error'}`} />
            {away === null ? 'live' : `away since ${away}`}
          </span>
          <span class="text-sm quiet hidden sm:inline">{session.value!.name ?? session.value!.email}</span>
        </>
      )}
      <ThemeButton />
      {isSignedIn() && (
        <button class="btn btn-ghost btn-square btn-sm" aria-label="Sign out" onClick={() => void leave()}>
          <Icon icon={LogOut} />
        </button>
      )}
    </header>
  )
}

function Content(): JSX.Element {
  const found = pageAt(address.value.path)
  document.title = `${found?.page.name ?? 'No such page'} · Larder`
  if (!found) return <Missing text="There is no such page" />
  const { page, id } = found
  if (!can(page.scope))
    return (
      <div class="card bg-base-100 p-4">
        <Heading text={page.name} />
        <p>Your role does not include this page. The owner of the hub can give you another role.</p>
      </div>
    )
  return <page.show key={`${page.to} ${id}`} id={id} />
}

function Page(): JSX.Element {
  const { path } = address.value
  const isInvited = path === '/invitation'
  const person = session.value
  if (path === '/contact')
    return (
      <div class="min-h-screen bg-base-200 text-base-content">
        <main class="p-3">
          <ContactAnswerPage />
        </main>
      </div>
    )
  return (
    <div class="min-h-screen bg-base-200 text-base-content" onKeyDown={ignoreHeldEnter}>
      <Header />
      {(isInvited || !isSignedIn()) && (
        <main class="p-3">{isInvited ? <InvitationPage /> : session.value !== undefined && <SignIn />}</main>
      )}
      {person && !isInvited && (
        // Typed texts stay when the session ends. Another person gets a new page.
        <div key={`${person.email} ${person.name}`} hidden={hasExpired.value}>
          <div class="mx-auto max-w-[100rem] lg:grid lg:grid-cols-[13rem_minmax(0,1fr)] items-start">
            <nav class="hidden lg:block sticky top-14 p-2" aria-label="Pages">
              <Navigation />
            </nav>
            <main class="p-3 min-w-0">
              <Content />
            </main>
          </div>
        </div>
      )}
      <Notices />
    </div>
  )
}

render(<Page />, document.getElementById('page')!)
keepCurrent()
void enter()
