import type { Client, Result } from '../../../protocol/client/client.ts'
import type { DepositResponse } from '../../../protocol/contract/consumer-wallet.ts'
import type { Unanswered } from '../../../protocol/ui/unanswered.ts'

interface Surroundings {
  client: Pick<Client, 'call'>
  unanswered: Unanswered
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

interface Deposit {
  key: string
  card: string
  saves: boolean
}

/**
 * Requests a deposit. A request without an answer may have charged the card. The next request of the same customer,
 * amount and way therefore repeats it, with the same key and the same card, until the service reports an outcome.
 */
export const requestDeposit = (
  { client, unanswered, newKey }: Surroundings,
  { userId, cents, way, saves, card, onSaved }: Wanted,
): Promise<{ result: Result<DepositResponse>; isRepeated: boolean }> =>
  unanswered.send(
    ['deposit', userId, cents, way],
    async (): Promise<Deposit> => ({ key: newKey(), card: await card(), saves }),
    (request) => send(client, cents, request, onSaved),
  )

async function send(
  client: Pick<Client, 'call'>,
  amount_cents: number,
  { key, card, saves }: Deposit,
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
