import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { registerPush } from '../../../../cloud/people/users/push-configs.ts'
import { openSealer, createSealer, ensureStoreSecret } from '../../../../cloud/platform/store/sealer.ts'
import { tables } from '../../../../cloud/platform/store/schema.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const { random } = systemRuntime()
const SECRET = 's'.repeat(32)

test('a sealed value can be opened by every process with the same secret, for the same purpose', () => {
  const sealed = createSealer(SECRET, random).seal('push token', 'of a phone')
  expect(createSealer(SECRET, random).open('push token', sealed)).toBe('of a phone')
  expect(sealed).not.toContain('phone')
  expect(createSealer(SECRET, random).seal('push token', 'of a phone')).not.toBe(sealed)
})

test('a value sealed by another secret, for another purpose, or changed since, is refused with the name of the setting', () => {
  const sealer = createSealer(SECRET, random)
  const sealed = sealer.seal('push token', 'of a phone')
  const changed = Buffer.from(sealed, 'base64')
  changed[changed.length - 1]! ^= 1
  expect(() => createSealer('t'.repeat(32), random).open('push token', sealed)).toThrow(/^STORE_SECRET: /)
  expect(() => sealer.open('client secret', sealed)).toThrow(/^STORE_SECRET: /)
  expect(() => sealer.open('push token', changed.toString('base64'))).toThrow(/^STORE_SECRET: /)
})

test('the secret is created once, and stored in its own file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-seal-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const first = ensureStoreSecret(folder, random, () => {})
  expect(ensureStoreSecret(folder, random, () => {})).toBe(first)
  expect(readFileSync(join(folder, 'store-secret'), 'utf8')).toBe(first)
})

onEachDatabase('the secret of the store', (open) => {
  const [first, second, third] = ['1', '2', '3'].map((letter) => letter.repeat(32)) as [
    string,
    string,
    string,
  ]

  test('a start with another secret is refused with a sentence, and changes nothing', async () => {
    const db = await open()
    const sealed = (await openSealer(db, [first], random)).seal('push token', 'of a phone')
    await expect(openSealer(db, [second], random)).rejects.toThrow(
      /^STORE_SECRET: the database was sealed with another/,
    )
    expect((await openSealer(db, [first], random)).open('push token', sealed)).toBe('of a phone')
  })

  test('a rotation preserves every value and digest, and the former secret ends with the first start without it', async () => {
    const db = await open()
    const before = await openSealer(db, [first], random)
    const [sealed, digest] = [before.seal('push token', 'of a phone'), before.digest('customer mark', 'ada')]
    const during = await openSealer(db, [second, first], random)
    const later = during.seal('push token', 'of another phone')
    expect((await openSealer(db, [first], random)).open('push token', later)).toBe('of another phone')
    await openSealer(db, [second, first], random)
    const after = await openSealer(db, [second], random)
    expect([after.open('push token', sealed), after.open('push token', later)]).toEqual([
      'of a phone',
      'of another phone',
    ])
    expect(after.digest('customer mark', 'ada')).toBe(digest)
    await expect(openSealer(db, [first], random)).rejects.toThrow(/^STORE_SECRET: /)
    await expect(openSealer(db, [third, first], random)).rejects.toThrow(/^STORE_SECRET: /)
    const rows = await db.kysely.selectFrom('store_seals').selectAll().execute()
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain(second)
  })

  test('processes that open an empty database at once share one inner secret', async () => {
    const db = await open()
    const sealers = await Promise.all([1, 2, 3].map(() => openSealer(db, [first], random)))
    const digests = sealers.map((sealer) => sealer.digest('customer mark', 'ada'))
    expect(new Set(digests).size).toBe(1)
  })
})

onEachDatabase('the database', (open) => {
  test('the database has no readable client secret or push token, but customers and push services get them', async () => {
    const shop = await openShop(await open())
    const { context } = shop
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const request = { userId, orderId, method: 'pm_card_authenticationRequired' }
    const { client_secret: ofPayment, payment_id: paymentId } = await pay(shop.services, request)
    const { client_secret: ofDeposit } = await deposit(shop.services, {
      userId,
      amountCents: 500,
      method: null,
    })
    await registerPush(context, userId, {
      device_id: 'phone',
      push_token: 'token-of-a-phone',
      platform: 'ios',
    })
    const secrets = [ofPayment!, ofDeposit, 'token-of-a-phone']
    expect(secrets).toEqual([
      expect.stringContaining('_secret_'),
      expect.stringContaining('_secret_'),
      secrets[2],
    ])
    for (const table of Object.keys(tables) as (keyof typeof tables)[]) {
      // These tables are the processor's books.
      if (table.startsWith('sandbox_')) continue
      const rows = JSON.stringify(await context.db.kysely.selectFrom(table).selectAll().execute())
      for (const secret of secrets) expect([table, rows.includes(secret)]).toEqual([table, false])
    }
    expect(await confirmPayment(shop.services, { userId, orderId, paymentId })).toMatchObject({
      client_secret: ofPayment,
    })
    const { push_token } = await context.db.kysely
      .selectFrom('push_configs')
      .select('push_token')
      .executeTakeFirstOrThrow()
    expect(context.sealer.open('push token', push_token)).toBe('token-of-a-phone')
  })

  test('a payment with a client secret sealed by another secret is paid without it', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const request = { userId, orderId, method: 'pm_card_authenticationRequired' }
    const { payment_id: paymentId } = await pay(shop.services, request)
    const errors: string[] = []
    const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
    const sealer = createSealer('t'.repeat(32), shop.context.runtime.random)
    const services = { ...shop.services, context: { ...shop.context, sealer, log } }
    expect(await confirmPayment(services, { userId, orderId, paymentId })).toMatchObject({
      status: 'succeeded',
      client_secret: null,
    })
    expect(errors).toContain('a client secret cannot be read')
  })
})
