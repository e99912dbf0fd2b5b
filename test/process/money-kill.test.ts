import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { balanceOf } from '../../cloud/commerce/ledger/ledger.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { reportBins } from '../world/seeds.ts'
import { openShop } from '../world/shop.ts'
import { healthy } from '../world/health.ts'
import { collectCloud } from '../invariants/collect-cloud.ts'
import type { Evidence } from '../invariants/evidence.ts'
import { moneyAddsUp } from '../invariants/money.ts'
import { walletsAddUp } from '../invariants/wallets.ts'
import { freePorts } from '../support/ports.ts'
import { mortalCloud, type MortalCloud } from './mortal-cloud.ts'

const runtime = systemRuntime()
const { clock, random } = runtime
/** More than the number of checkpoints of any of these requests. */
const MOST_POINTS = 40
/** After the first two checkpoints, before and after a commit: each third. `money/operations.test.ts` ends a cloud at each one. */
const EVERY = 3

interface Stage {
  db: CloudDatabase
  cloud: MortalCloud
  baseUrl: string
  ownerKey: string
}

interface Customer {
  id: number
  token: string
}

interface Answer {
  status: number
  json: Record<string, unknown>
}

/** A request; undefined if the cloud died during it. */
async function send(
  { baseUrl }: Stage,
  path: string,
  headers: Record<string, string>,
  body?: object,
  method = 'POST',
): Promise<Answer | undefined> {
  try {
    const answer = await fetch(`${baseUrl}${path}`, {
      method,
      // No connection survives its cloud.
      headers: { Connection: 'close', ...headers, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
  } catch {
    return undefined
  }
}

async function asked(answer: Promise<Answer | undefined>): Promise<Record<string, unknown>> {
  const given = await answer
  if (given?.status !== 200 && given?.status !== 201) throw new Error(`unexpected: ${JSON.stringify(given)}`)
  return given.json
}

async function newCustomer(stage: Stage): Promise<Customer> {
  const sub = `customer-${randomHex(random, 6)}`
  const { access_token } = await asked(send(stage, '/demo/identity/token', {}, { sub, anonymous: true }))
  const headers = { Authorization: `Bearer ${String(access_token)}` }
  const { user_id } = await asked(send(stage, '/users/user/bootstrap/guest', headers))
  return { id: user_id as number, token: String(access_token) }
}

const as = ({ token }: Customer, more: Record<string, string> = {}) => ({
  Authorization: `Bearer ${token}`,
  ...more,
})

async function newCart(stage: Stage, customer: Customer): Promise<number> {
  const orders = `/users/${customer.id}/orders`
  const { order_id } = await asked(send(stage, `${orders}?hub_id=1`, as(customer)))
  const item = { product_id: 1, quantity: 2 }
  await asked(send(stage, `${orders}/${String(order_id)}/order_item?hub_id=1`, as(customer), item, 'PUT'))
  return order_id as number
}

const payment = (order_id: number, payment_method_id = 'pm_card_visa') => ({ order_id, payment_method_id })

async function fill(stage: Stage, customer: Customer): Promise<void> {
  await asked(
    send(stage, '/users/wallet/deposit', as(customer), {
      amount_cents: 2000,
      payment_method_id: 'pm_card_visa',
    }),
  )
  await until(
    `user ${customer.id} has money`,
    async () => (await balanceOf(stage.db.kysely, customer.id, 'wallet')) === 2000,
  )
}

/**
 * A request during which the cloud may die, and the conditions that must hold when everything has come to
 * rest.
 */
interface PersonAction {
  prepare: (stage: Stage) => Promise<{
    request: (headers: Record<string, string>) => Promise<Answer | undefined>
    check: (times: number) => Promise<void>
  }>
}

const deeds: Record<string, PersonAction> = {
  pay: {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      const id = await newCart(stage, customer)
      return {
        request: (headers) => send(stage, '/users/payments/pay', as(customer, headers), payment(id)),
        check: () => paidOnceOrNever(stage, id),
      }
    },
  },
  confirm: {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      const id = await newCart(stage, customer)
      const method = 'pm_card_authenticationRequired'
      const begun = await asked(send(stage, '/users/payments/pay', as(customer), payment(id, method)))
      const body = { order_id: id, payment_intent_id: begun['payment_id'] }
      return {
        request: (headers) => send(stage, '/users/payments/confirm-payment', as(customer, headers), body),
        check: () => paidOnceOrNever(stage, id),
      }
    },
  },
  deposit: {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      const body = { amount_cents: 2500, payment_method_id: 'pm_card_visa' }
      return {
        request: (headers) => send(stage, '/users/wallet/deposit', as(customer, headers), body),
        async check(times) {
          const balance = await balanceOf(stage.db.kysely, customer.id, 'wallet')
          expect(balance % 2500).toBe(0)
          expect(balance).toBeLessThanOrEqual(2500 * times)
        },
      }
    },
  },
  "a deposit's webhook": {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      // The money of a bank account arrives later: only the webhook reports it.
      const body = { amount_cents: 2500, payment_method_id: 'pm_usBankAccount' }
      return {
        request: (headers) =>
          send(
            stage,
            '/users/wallet/deposit',
            as(customer, { 'X-Webhook-Dies-At': headers['X-Die-At'] ?? String(MOST_POINTS) }),
            body,
          ),
        check: async (times) =>
          expect(await balanceOf(stage.db.kysely, customer.id, 'wallet')).toBe(2500 * times),
      }
    },
  },
  debit: {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      await fill(stage, customer)
      const id = await newCart(stage, customer)
      return {
        request: (headers) => send(stage, '/users/wallet/debit', as(customer, headers), { order_id: id }),
        async check() {
          await paidOnceOrNever(stage, id)
          const { processing_status } = await orderOf(stage, id)
          expect(await balanceOf(stage.db.kysely, customer.id, 'wallet')).toBe(
            processing_status === S.QUEUED ? 2000 - 541 : 2000,
          )
        },
      }
    },
  },
  'a refund of a line': {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      const id = await newCart(stage, customer)
      await asked(send(stage, '/users/payments/pay', as(customer), payment(id)))
      const path = `/api/v1/owners/orders/${id}/items/1/refund`
      return {
        request: (headers) => send(stage, path, { 'X-API-Key': stage.ownerKey, ...headers }),
        async check(times) {
          const back = await returnedOf(stage, id)
          expect(times === 1 ? [0, 270] : [270, 541]).toContain(back)
        },
      }
    },
  },
  'a full refund of a queued order': {
    async prepare(stage) {
      const customer = await newCustomer(stage)
      const id = await newCart(stage, customer)
      await asked(send(stage, '/users/payments/pay', as(customer), payment(id)))
      const path = `/api/v1/owners/orders/${id}/refund`
      return {
        request: (headers) => send(stage, path, { 'X-API-Key': stage.ownerKey, ...headers }),
        async check() {
          const { processing_status, payment_status } = await orderOf(stage, id)
          const back = await returnedOf(stage, id)
          expect([processing_status, payment_status, back]).toEqual(
            back === 0 ? [S.QUEUED, 'completed', 0] : [S.CANCELLED, 'refunded', 541],
          )
        },
      }
    },
  },
}

const orderOf = ({ db }: Stage, id: number) =>
  db.kysely.selectFrom('orders').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

async function returnedOf({ db }: Stage, orderId: number): Promise<number> {
  const rows = await db.kysely.selectFrom('refunds').selectAll().where('order_id', '=', orderId).execute()
  return rows.reduce((sum, { amount, status }) => sum + (status === 'succeeded' ? amount : 0), 0)
}

/** No order is charged twice or for nothing: a paid order is at the hub once, an unpaid one is a cart. */
async function paidOnceOrNever(stage: Stage, id: number): Promise<void> {
  const q = stage.db.kysely
  const { processing_status } = await orderOf(stage, id)
  const payments = await q.selectFrom('payments').selectAll().where('order_id', '=', id).execute()
  const paid = payments.filter(({ status }) => status === 'completed')
  const queued = await q
    .selectFrom('hub_outbox_entries')
    .select('body')
    .where('body', 'like', `%"number":${id},%`)
    .execute()
  const isPaid = processing_status === S.QUEUED
  if (!isPaid) expect([S.NEW, S.PENDING_PAYMENT]).toContain(processing_status)
  expect([paid.length, queued.length]).toEqual(isPaid ? [1, 1] : [0, 0])
}

/** No work is pending, in the service or between it and the processor. */
async function isQuiet({ db }: Stage): Promise<boolean> {
  const q = db.kysely
  const waiting = await Promise.all([
    q.selectFrom('payments').select('id').where('status', '=', 'pending').executeTakeFirst(),
    q.selectFrom('due_work').select('subject').where('kind', '=', 'money/refund').executeTakeFirst(),
    q.selectFrom('ledger_entries').select('id').where('status', '=', 'pending').executeTakeFirst(),
    q.selectFrom('sandbox_events').select('id').where('delivered_at', 'is', null).executeTakeFirst(),
  ])
  return waiting.every((row) => row === undefined)
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; !(await holds()); waited += 25) {
    if (waited > 20_000) throw new Error(`it never came to this: ${what}`)
    await sleep(clock, 25)
  }
}

/** All books agree, to the cent. */
async function booksAgree({ db }: Stage): Promise<void> {
  const evidence = { cloud: await collectCloud(db.kysely, 1) } as Evidence
  expect([...moneyAddsUp(evidence), ...walletsAddUp(evidence)]).toEqual([])
}

/** One bin for every order of this test: no person fills or empties bins. */
const manyBins = Array.from({ length: 1000 }, (_, index) => ({ ...healthy.bins[0]!, bin_number: index + 1 }))

/** A separate database with the shop's hub and products. */
async function prepareStage(folder: string): Promise<{ stage: Stage; close: () => Promise<void> }> {
  const databaseUrl = `sqlite:${join(folder, 'larder.sqlite')}`
  const db = openDatabase({ url: databaseUrl })
  await db.migrate()
  await openShop(db, { products: [{ price: 250, quantity: 100_000 }] })
  const now = clock.now()
  await db.kysely
    .updateTable('hub_sessions')
    .set({ last_heard_at: now, health_at: now, is_connected: 0 })
    .execute()
  await reportBins(db, 1, manyBins, now)
  const owner = { name: 'test', ownerId: 1, scopes: ['orders:write'] as const, hubs: '*' as const }
  const { key } = await issueApiKey(db.kysely, runtime, { ...owner, expiresAt: null })
  const [port, mqttPort] = (await freePorts(2)) as [number, number]
  const cloud = mortalCloud({ folder, databaseUrl, port, mqttPort, clock })
  return {
    stage: { db, cloud, baseUrl: `http://127.0.0.1:${port}`, ownerKey: key },
    async close() {
      await cloud.stop()
      await db.close()
    },
  }
}

describe('a cloud that is killed during', () => {
  let folder: string
  let stage: Stage
  let close: () => Promise<void>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'larder-kill-'))
    ;({ stage, close } = await prepareStage(folder))
  })
  beforeEach(async () => {
    // The former test has chosen a checkpoint that was not reached. Later work must not reach it either.
    await stage.cloud.stop()
    await stage.cloud.start()
  })
  afterAll(async () => {
    await close()
    rmSync(folder, { recursive: true })
  })

  test.each(Object.keys(deeds))(
    'after a kill at the first two steps, or a third one, of %s, the processor and the books agree on the money',
    { timeout: 300_000 },
    async (name) => {
      const points: string[] = []
      for (let n = 1; ; n += n === 1 ? 1 : EVERY) {
        expect(n).toBeLessThan(MOST_POINTS)
        const { request, check } = await deeds[name]!.prepare(stage)
        const answer = await request({ 'X-Die-At': String(n) })
        if (await livesOn(stage, answer !== undefined)) break
        points.push(stage.cloud.diedAt()!)
        await stage.cloud.start()
        await until(`all is quiet after ${points.at(-1)}`, () => isQuiet(stage))
        await check(1)
        await booksAgree(stage)
        // A caller without an answer repeats the request.
        await request({})
        await until('all is quiet', () => isQuiet(stage))
        await check(2)
        await booksAgree(stage)
      }
      console.log(`${name}: killed at ${points.join(', ')}`)
      expect(points).toContain('db.before-commit')
      expect(points).toContain('db.after-commit')
    },
  )
})

/** Whether the cloud survived the request and the webhooks that follow from it. */
async function livesOn(stage: Stage, hasAnswered: boolean): Promise<boolean> {
  let lives = true
  await until('the webhooks are delivered, or it died', async () => {
    lives = stage.cloud.diedAt() === undefined
    return !lives || (hasAnswered && (await isQuiet(stage)))
  })
  return lives
}
