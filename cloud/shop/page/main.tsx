import { PackageOpen, ReceiptText, ShoppingBasket, UserRound } from 'lucide'
import { type JSX, render } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { keepFocus } from '../../../protocol/ui/kept-focus.ts'
import { pause } from '../../../protocol/ui/live.ts'
import { Notices } from '../../../protocol/ui/notices.tsx'
import { ThemeButton } from '../../../protocol/ui/theme.tsx'
import { AccountView } from './account.tsx'
import { CartView } from './cart.tsx'
import { choose, filled, language, languages, money, words } from './language.ts'
import { OrderView, OrdersView } from './order.tsx'
import { place, shopAddress, show } from './place.ts'
import { ReceiptView } from './receipt.tsx'
import { ProductsView } from './products.tsx'
import {
  cart,
  count,
  hub,
  isAway,
  isUnknown,
  readAll,
  readCustomer,
  running,
  session,
  signInAddress,
  signOut,
  wallet,
} from './store.ts'

function Header(): JSX.Element {
  return (
    <header class="print:hidden sticky top-0 z-10 flex items-center bg-base-100 border-b border-base-300 gap-1 px-3 min-h-14">
      <a href={shopAddress()} class="touch gap-2 grow min-w-0 font-semibold" onClick={toProducts}>
        <Icon icon={PackageOpen} /> <span class="truncate">{hub.value?.name ?? 'Larder'}</span>
      </a>
      {session.value?.user_id != null && (
        <a
          class="btn btn-ghost btn-square btn-sm"
          href="#orders"
          aria-label={words().orders}
          title={words().orders}
        >
          <Icon icon={ReceiptText} />
        </a>
      )}
      {(session.value?.kind === 'person' || session.value?.can_sign_in) && (
        <a
          class="btn btn-ghost btn-square btn-sm"
          href="#account"
          aria-label={words().account}
          title={words().account}
        >
          <Icon icon={UserRound} />
        </a>
      )}
      <select
        class="select select-ghost w-auto px-2 pe-7"
        aria-label={words().choose_language}
        value={language.value}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {languages.map(({ code, name }) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
      <ThemeButton light={words().light_colours} dark={words().dark_colours} />
    </header>
  )
}

function toProducts(event: Event): void {
  event.preventDefault()
  show()
}

/** The reasons for which the hub sells nothing, or not everything: shown before payment. */
function Closed(): JSX.Element | null {
  const { closed_reason: reason, closed_cabinets: cabinets } = hub.value ?? {}
  const texts = [...new Set((cabinets ?? []).map((one) => words().cabinet[one.reason]))]
  if (reason) texts.unshift(words().closed[reason])
  return texts.length === 0 ? null : (
    <>
      {texts.map((text) => (
        <p key={text} class="alert alert-warning" role="status" data-closed={reason ?? 'cabinet'}>
          {text}
        </p>
      ))}
    </>
  )
}

function Account(): JSX.Element | null {
  const known = session.value
  if (!known) return null
  if (known.kind === 'person')
    return (
      <p class="flex flex-wrap items-center gap-2">
        {filled(words().signed_in, { email: known.email ?? '' })}
        <a class="link touch" href="#account">
          {filled(words().balance, { price: money(wallet.value, hub.value?.currency ?? 'USD') })}
        </a>
        <button class="btn btn-sm" onClick={() => void signOut()}>
          {words().sign_out}
        </button>
      </p>
    )
  return known.can_sign_in && !running.value ? (
    <p class="flex flex-wrap items-center gap-2">
      <a class="btn btn-sm" href={signInAddress()}>
        {words().sign_in}
      </a>
      <span class="quiet text-sm">{words().sign_in_why}</span>
    </p>
  ) : null
}

/** Spares a person with a keyboard the way through all products. */
function toCart(event: Event): void {
  event.preventDefault()
  location.hash = 'cart'
  requestAnimationFrame(() => document.querySelector<HTMLElement>('aside h2')?.focus())
}

function Shop(): JSX.Element {
  const at = place.value.at
  const order = running.value
  return (
    <>
      {at !== 'cart' && count.value > 0 && (
        <a class="btn btn-sm w-fit sr-only focus:not-sr-only" href="#cart" onClick={toCart}>
          {words().show_cart}
        </a>
      )}
      <Closed />
      {order && (
        <p class="alert alert-info flex flex-wrap">
          <span class="grow">{filled(words().under_way, { id: order.order_id })}</span>
          <button class="btn btn-sm" onClick={() => show(order.order_id)}>
            {words().show_order}
          </button>
        </p>
      )}
      <div class="grid gap-4 lg:grid-cols-[minmax(0,1fr)_24rem] items-start">
        <div class={`min-w-0 ${at === 'cart' ? 'hidden lg:block' : ''}`}>
          <ProductsView />
        </div>
        <aside
          class={`card bg-base-100 p-4 min-w-0 lg:sticky lg:top-18 ${at === 'cart' ? '' : 'hidden lg:block'}`}
          aria-label={words().cart}
        >
          <CartView />
        </aside>
      </div>
      <Account />
      {at !== 'cart' && count.value > 0 && cart.value && (
        <a class="btn btn-primary sticky bottom-3 w-full lg:hidden shadow-lg" href="#cart" data-show-cart>
          <Icon icon={ShoppingBasket} /> {words().show_cart} ({count.value}) ·{' '}
          {money(cart.value.total, cart.value.currency)}
        </a>
      )}
    </>
  )
}

function Unknown(): JSX.Element {
  return (
    <div class="card bg-base-100 p-6 max-w-lg mx-auto w-full grid gap-2" data-unknown>
      <h1 class="text-xl font-semibold">{words().no_hub}</h1>
      <p>{words().no_hub_help}</p>
    </div>
  )
}

function Page(): JSX.Element {
  const at = place.value
  return (
    <>
      <Header />
      <main class="p-3 grid gap-3 max-w-7xl mx-auto w-full">
        {isAway.value && (
          <p class="alert alert-error alert-soft text-base-content" role="alert" data-away>
            {words().no_connection}
          </p>
        )}
        {isUnknown.value ? (
          <Unknown />
        ) : at.at === 'order' ? (
          <OrderView key={at.orderId} orderId={at.orderId} />
        ) : at.at === 'receipt' ? (
          <ReceiptView orderId={at.orderId} />
        ) : at.at === 'orders' ? (
          <OrdersView />
        ) : at.at === 'account' ? (
          <AccountView />
        ) : (
          <Shop />
        )}
      </main>
      <Notices putAwayText={words().put_away} />
    </>
  )
}

hub.subscribe((known) => void (document.title = known ? known.name : 'Larder'))
const page = document.getElementById('page')!
render(<Page />, page)
keepFocus(page)

/** Prices, stock, the state of the hub and the customer's orders change: a visible page reads them at this interval, in milliseconds. */
const READ_MS = 20_000
/** The interval while there is no connection, in milliseconds. */
const RETRY_MS = 3000

async function refresh(): Promise<void> {
  for (;;) {
    if (!document.hidden) await readAll()
    await pause(isAway.value ? RETRY_MS : READ_MS)
  }
}
// A page in the background shows its session, too.
if (document.hidden) void readCustomer()
void refresh()
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void readAll()
})
