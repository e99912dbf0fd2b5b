import type { Checkpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import type {
  CardProcessor,
  IntentStatus,
  ProcessorRefund,
} from '../../../cloud/commerce/processors/processor.ts'
import { WorkRunner } from '../../../cloud/platform/work/runner.ts'
import { sandboxWork, createSandbox } from '../../../cloud/commerce/processors/sandbox/sandbox.ts'
import { readInstallation } from '../../../cloud/commerce/processors/stripe/account.ts'
import { createStripe } from '../../../cloud/commerce/processors/stripe/stripe.ts'
import { signPayload } from '../../../cloud/platform/http/signature.ts'
import { closeDispute, openDispute, refundInDashboard } from './dashboard.ts'
import { STRIPE_KEY, type StripeServer } from './stripe/server.ts'

/** Secret of the processor's signatures. */
export const SECRET = 'whsec'

export interface BankIntent {
  id: string
  /** The idempotency key that the service sent. */
  key: string
  amount: number
  /** Refunded cents. */
  refunded: number
  status: IntentStatus
}

export interface BankRefund {
  id: string
  intent: string
  amount: number
  status: ProcessorRefund['status']
}

/** The other side of a card processor: its own books, actions of its customers, and its events. */
export interface Bank {
  name: CardProcessor['name']
  /** Oldest first. */
  intents(): Promise<BankIntent[]>
  refunds(): Promise<BankRefund[]>
  /** Customers at the processor, with their saved methods. */
  customers(): Promise<{ id: string; methods: string[] }[]>
  /** Takes the money of an intent, or of all intents, without an event. */
  take(ref?: string): Promise<void>
  /** The card's holder authenticates in the processor's form. */
  approve(ref: string): Promise<void>
  /** Pending refunds succeed, without an event. */
  arrive(): Promise<void>
  /** The bank returns a refund; the processor publishes no event yet. */
  returnRefund(ref: string): Promise<void>
  /** A person refunds money of an intent in the processor's own pages; the processor publishes it. */
  giveBack(ref: string, amount: number): Promise<void>
  /** A cardholder's bank disputes an intent; the processor publishes it. */
  dispute(ref: string): Promise<void>
  endDispute(ref: string, end: 'won' | 'lost'): Promise<void>
  /** Delivers all due events with their signatures. Returns true for accepted ones. */
  deliverEvents(deliver: (body: string, signature: string) => Promise<boolean>): Promise<void>
  /** An event in the processor's format, from ours. */
  eventOf(event: { id: string; type: string; object: Record<string, unknown> }): Promise<string>
  /** A card with refunds that are refused at once. */
  unrefundable: string
}

export interface BankParts {
  context: CloudContext
  checkpoint: Checkpoint
}
export type OpenBank = (parts: BankParts) => Promise<{ processor: CardProcessor; bank: Bank }>

export const openSandboxBank: OpenBank = ({ context, checkpoint }) => {
  const { db, runtime } = context
  const q = db.kysely
  const bank: Bank = {
    name: 'sandbox',
    async intents() {
      const rows = await q
        .selectFrom('sandbox_intents')
        .selectAll()
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(({ id, idempotency_key, amount, refunded, status }) => ({
        id,
        key: idempotency_key,
        amount,
        refunded,
        status: status as IntentStatus,
      }))
    },
    async refunds() {
      const rows = await q.selectFrom('sandbox_refunds').selectAll().orderBy('created_at').execute()
      return rows.map(({ id, intent_id, amount, status }) => ({
        id,
        intent: intent_id,
        amount,
        status: status as BankRefund['status'],
      }))
    },
    async customers() {
      const rows = await q.selectFrom('sandbox_customers').selectAll().where('is_removed', '=', 0).execute()
      const methods = await q.selectFrom('sandbox_methods').selectAll().orderBy('created_at').execute()
      return rows.map(({ id }) => ({
        id,
        methods: methods.filter(({ customer_id }) => customer_id === id).map((method) => method.id),
      }))
    },
    async take(ref) {
      await q
        .updateTable('sandbox_intents')
        .set({ status: 'succeeded' })
        .$if(ref !== undefined, (rows) => rows.where('id', '=', ref!))
        .execute()
    },
    // The customer confirms it.
    approve: () => Promise.resolve(),
    async arrive() {
      await q
        .updateTable('sandbox_refunds')
        .set({ status: 'succeeded' })
        .where('status', '=', 'pending')
        .execute()
    },
    async returnRefund(ref) {
      const { intent_id, amount } = await q
        .updateTable('sandbox_refunds')
        .set({ status: 'failed' })
        .where('id', '=', ref)
        .returning(['intent_id', 'amount'])
        .executeTakeFirstOrThrow()
      await q
        .updateTable('sandbox_intents')
        .set((eb) => ({ refunded: eb('refunded', '-', amount) }))
        .where('id', '=', intent_id)
        .execute()
    },
    giveBack: async (ref, amount) => void (await refundInDashboard({ db, runtime }, ref, amount)),
    dispute: (ref) => openDispute({ db, runtime }, ref),
    endDispute: (ref, end) => closeDispute({ db, runtime }, ref, end),
    async deliverEvents(deliver) {
      await new WorkRunner(context, sandboxWork({ context, secret: SECRET, deliver })).drain()
    },
    eventOf: ({ id, type, object }) => Promise.resolve(JSON.stringify({ id, type, data: { object } })),
    unrefundable: 'pm_card_refundFail',
  }
  return Promise.resolve({ processor: createSandbox({ db, runtime, checkpoint }), bank })
}

/** Opens a separate account on the server, which is reset when the next one is opened. */
export const openStripeBank =
  (server: StripeServer): OpenBank =>
  async ({ context }) => {
    const { db, runtime } = context
    const { clock } = runtime
    server.reset(() => clock.now())
    const { books } = server
    const installation = await readInstallation(db, runtime)
    const keyOf = (id: string): string => {
      const own = books.intents.get(id)!.metadata
      return own['payment_id'] === undefined ? `deposit:${own['deposit_id']}` : `payment:${own['payment_id']}`
    }
    const bank: Bank = {
      name: 'stripe',
      intents: () =>
        Promise.resolve(
          [...books.intents.values()].map((intent) => ({
            id: intent.id,
            key: keyOf(intent.id),
            amount: intent.amount,
            refunded: books.refunded(intent.id),
            status:
              intent.status === 'requires_payment_method'
                ? intent.last_payment_error
                  ? 'failed'
                  : 'requires_action'
                : intent.status,
          })),
        ),
      refunds: () =>
        Promise.resolve(
          [...books.refunds.values()].map(({ id, payment_intent, amount, status }) => ({
            id,
            intent: payment_intent,
            amount,
            status,
          })),
        ),
      customers: () =>
        Promise.resolve(
          [...books.customers.keys()].map((id) => ({
            id,
            methods: [...books.methods.values()]
              .filter(({ customer }) => customer === id)
              .map((one) => one.id),
          })),
        ),
      take(ref) {
        const before = books.events.length
        for (const intent of ref === undefined ? books.intents.values() : [books.intent(ref)])
          books.succeed(intent)
        books.events.length = before
        return Promise.resolve()
      },
      approve: (ref) => Promise.resolve(books.succeed(books.intent(ref))),
      arrive() {
        for (const refund of books.refunds.values())
          if (refund.status === 'pending') refund.status = 'succeeded'
        return Promise.resolve()
      },
      returnRefund(ref) {
        books.failRefund(books.refunds.get(ref)!, 'lost_or_stolen_card')
        books.events.pop()
        return Promise.resolve()
      },
      giveBack: (ref, amount) =>
        Promise.resolve(void books.createRefund({ payment_intent: ref, amount: String(amount) })),
      dispute: (ref) => Promise.resolve(books.dispute(ref)),
      endDispute: (ref, end) => Promise.resolve(books.endDispute(ref, end)),
      async deliverEvents(deliver) {
        books.settle()
        for (const event of books.events.slice())
          if (await deliver(event.body, signPayload(event.body, SECRET, clock.now())))
            books.events.splice(books.events.indexOf(event), 1)
      },
      eventOf: ({ id, type, object }) =>
        Promise.resolve(
          JSON.stringify({
            id,
            object: 'event',
            type,
            data: {
              object: {
                ...object,
                last_payment_error: object['decline_code'] ? { decline_code: object['decline_code'] } : null,
                metadata: {
                  larder: installation,
                  ...Object.fromEntries(
                    Object.entries(object['metadata'] ?? {}).map(([name, value]) => [name, String(value)]),
                  ),
                },
              },
            },
          }),
        ),
      unrefundable: 'pm_card_refundRefused',
    }
    const processor = createStripe({
      apiKey: STRIPE_KEY,
      url: server.url,
      installation,
      clock,
      log: silentLog,
      timeoutMs: 1000,
      retries: 0,
    })
    return { processor, bank }
  }
