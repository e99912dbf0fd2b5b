import { signal } from '@preact/signals'
import { Trash2 } from 'lucide'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { pause } from '../../../protocol/ui/live.ts'
import { filled, language, money, words } from './language.ts'
import { cardName, depositWays, deposit, isPaying, removeCard } from './payment.ts'
import { show } from './place.ts'
import { SignInFirst } from './sign-in.tsx'
import { client, hub, methods, moves, pending, readCustomer, session, signOut, wallet } from './store.ts'
import { Ways } from './ways.tsx'

/** Amounts that the page offers, in cents. */
const AMOUNTS = [1000, 2000, 5000]
const amount = signal(AMOUNTS[0]!)
/** Interval at which a deposit under way is read, in milliseconds. */
const READ_MS = 1500

function Deposit({ currency }: { currency: string }): JSX.Element {
  const ways = depositWays()
  if (ways.length === 0) return <p>{words().cards_missing}</p>
  return (
    <form
      class="grid gap-3"
      onSubmit={(event) => {
        event.preventDefault()
        void deposit(amount.value)
      }}
    >
      <label class="grid gap-1">
        <span class="font-medium">{words().add_money}</span>
        <select
          class="select w-full"
          onChange={(event) => (amount.value = Number(event.currentTarget.value))}
        >
          {AMOUNTS.map((cents) => (
            <option key={cents} value={cents} selected={cents === amount.value}>
              {money(cents, currency)}
            </option>
          ))}
        </select>
      </label>
      <Ways ways={ways} title={words().pay_with} amount={amount.value} currency={currency} canSave />
      <button class="btn btn-primary" disabled={isPaying.value} data-deposit>
        {isPaying.value ? words().paying : filled(words().deposit, { price: money(amount.value, currency) })}
      </button>
    </form>
  )
}

/** Reads the wallet, and again as long as a deposit is under way. */
async function follow(closed: AbortSignal): Promise<void> {
  await readAccount()
  while (!closed.aborted) {
    await pause(READ_MS)
    if (pending.value > 0) await readAccount()
  }
}

async function readAccount(): Promise<void> {
  await readCustomer()
  if (session.value?.kind !== 'person') return
  const read = await client.call('GET /users/wallet/transactions', { query: { limit: 10 } })
  if (read.ok) moves.value = read.data
}

/** The newest changes of the wallet. */
function Moves({ currency }: { currency: string }): JSX.Element | null {
  const date = new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' })
  if (moves.value.length === 0) return null
  return (
    <>
      <h2 class="text-lg font-semibold">{words().moves}</h2>
      <ul class="grid gap-2" data-moves>
        {moves.value.map(({ id, type, status, amount_cents, order_id, created_at }) => (
          <li key={id} class="flex flex-wrap gap-x-3">
            <span class="grow">
              {filled(words().move[type], { id: order_id ?? '' })}
              <span class="quiet text-sm block">
                {date.format(new Date(created_at))} {words().move_status[status]}
              </span>
            </span>
            <span class="tabular-nums">{money(amount_cents, currency)}</span>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The wallet and the saved cards of a signed-in customer. */
export function AccountView(): JSX.Element {
  const { currency = 'USD' } = hub.value ?? {}
  useEffect(() => {
    const closed = new AbortController()
    void follow(closed.signal)
    return () => closed.abort()
  }, [])
  if (session.value && session.value.kind !== 'person')
    return <SignInFirst title={words().account} why={words().sign_in_first} />
  if (!session.value) return <p class="quiet p-4">{words().loading}</p>
  return (
    <div class="card bg-base-100 p-4 grid gap-4 max-w-2xl mx-auto w-full">
      <h1 class="text-xl font-semibold">{words().account}</h1>
      <p class="flex flex-wrap items-center gap-2">
        {filled(words().signed_in, { email: session.value.email ?? '' })}
        <button class="btn btn-sm" onClick={() => void signOut()}>
          {words().sign_out}
        </button>
      </p>
      <div role="status" data-balance={wallet.value}>
        <p>{filled(words().balance, { price: money(wallet.value, currency) })}</p>
        {pending.value > 0 && <p>{filled(words().pending, { price: money(pending.value, currency) })}</p>}
      </div>
      <Deposit currency={currency} />
      <Moves currency={currency} />
      <h2 class="text-lg font-semibold">{words().saved_cards}</h2>
      {methods.value.length === 0 && <p class="quiet">{words().saved_cards_none}</p>}
      <ul class="grid gap-2">
        {methods.value.map((saved) => (
          <li key={saved.payment_method_id} class="flex items-center gap-2">
            <span class="grow">{cardName(saved)}</span>
            <button
              class="btn btn-square"
              aria-label={filled(words().remove_card, { name: cardName(saved) })}
              onClick={() => {
                const question = filled(words().remove_card_sure, { name: cardName(saved) })
                if (globalThis.confirm(question)) void removeCard(saved.payment_method_id)
              }}
            >
              <Icon icon={Trash2} />
            </button>
          </li>
        ))}
      </ul>
      <button class="btn w-fit" onClick={() => show()}>
        {words().buy_here}
      </button>
    </div>
  )
}
