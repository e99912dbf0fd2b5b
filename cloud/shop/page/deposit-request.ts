import type { Client, Failure, Result } from '../../../protocol/client/client.ts'
import type { DepositResponse } from '../../../protocol/contract/consumer-wallet.ts'

interface Surroundings {
  client: Pick<Client, 'call'>
  /** Survives a reload of the page. */
  storage: {
    getItem(name: string): string | null
    setItem(name: string, text: string): void
    removeItem(name: string): void
  }
  newKey: () => string
}

interface Wanted {
  userId: number
  cents: number
  /** The customer's choice: a saved card, or the form for a new one. */
  way: string
  /** The card is saved first. */
  saves: boolean
  /** The id of the chosen card. */
  card: () => Promise<string>
  onSaved: () => void
}

/** A request without an answer. */
interface Unanswered {
  key: string
  card: string
  saves: boolean
}

/**
 * Requests a deposit. A request without an answer may have charged the card. The next request of the same customer,
 * amount and way therefore repeats it, with the same key and the same card, until the service reports an outcome.
 */
export async function requestDeposit(
  { client, storage, newKey }: Surroundings,
  { userId, cents, way, saves, card, onSaved }: Wanted,
): Promise<Result<DepositResponse>> {
  const name = `larder-deposit ${userId} ${cents} ${way}`
  const stored = storage.getItem(name)
  const request =
    stored === null ? { key: newKey(), card: await card(), saves } : (JSON.parse(stored) as Unanswered)
  storage.setItem(name, JSON.stringify(request))
  const result = await send(client, cents, request, onSaved)
  if (result.ok || isOutcome(result.error)) storage.removeItem(name)
  return result
}

async function send(
  client: Pick<Client, 'call'>,
  amount_cents: number,
  { key, card, saves }: Unanswered,
  onSaved: () => void,
): Promise<Result<DepositResponse>> {
  let payment_method_id = card
  if (saves) {
    const saved = await client.call('POST /users/payments/save-payment-method', {
      body: { payment_method_id },
      idempotencyKey: `${key}-card`,
    })
    if (!saved.ok) return saved
    ;({ payment_method_id } = saved.data)
    onSaved()
  }
  return client.call('POST /users/wallet/deposit', {
    body: { amount_cents, payment_method_id },
    idempotencyKey: key,
  })
}

/** Refusals that concern the call, not the deposit: an earlier try may have been executed. */
const REFUSED_CALL = [0, 401, 403, 429]

const isOutcome = ({ status, code }: Failure): boolean =>
  status < 500 && !REFUSED_CALL.includes(status) && code !== 'idempotency_key_in_use'
