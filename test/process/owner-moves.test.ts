import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { violationsOf } from '../invariants/check.ts'
import { service } from '../support/services.ts'
import { enrolledInstallation, secondCell, type Moved } from './cells/two-cells.ts'
import { createClient } from './chaos/client.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { newCustomer } from './chaos/customer.ts'
import { collect, WAIT_MS } from './chaos/installation.ts'
import { attempt, operate } from './chaos/operator.ts'
import { Tally } from './chaos/tally.ts'

const runtime = systemRuntime()
const { clock } = runtime

service('openssl')(
  'an owner moves to another cell: an order in progress ends first, the board follows, sells there from its stock, and the books add up',
  async () => {
    const installation = await enrolledInstallation()
    const { plant, room, come, reaches, becomes, failures } = installation
    const auditor = await createAuditor(plant, room)
    onTestFinished(() => auditor.close())
    const { owner } = await operate(plant, 'hubs', 'show', '1')
    const [zero, one] = [plant, await secondCell()]

    const customer = await come(1)
    await customer.pay()
    await reaches(customer, S.READY)
    await operate(zero, 'hubs', 'set', '1', '--maintenance', 'on')
    const file = join(one.folder, 'owner.json')
    const toFile = ['export', String(owner), '--hubs', '1', '--to', file]
    const early = await attempt(zero, 'owners', ...toFile)
    expect([early.status, early.errors]).toEqual([1, expect.stringContaining('unfinished order')])
    await collect(installation, customer)
    expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
    expect(violationsOf(await auditor.evidence())).toEqual([])
    const stock = (await room.hub()).stock.map(({ quantity }) => quantity)

    await operate(zero, 'owners', ...toFile)
    const { hubs } = await one.larder<Moved>('owners', 'import', file)
    expect(hubs).toMatchObject([{ former_hub_id: 1, hub_id: 100_000_001, is_enrolled: false }])
    const [hub] = hubs
    const board = dirname(plant.places.journal)
    const identity = readFileSync(join(board, 'enrolment.json'), 'utf8')
    const codes = join(one.folder, 'code')
    const shown = async () =>
      (await operate(zero, 'hubs', 'show', '1')) as {
        hub_status: string
        next_cell: { state: string; error: string }
      }
    /** Orders the move until the hub is retired here: its fridges must first be proven cold. Returns the refusals. */
    async function send(code: string, isFinal: (error: string) => boolean): Promise<string[]> {
      writeFileSync(codes, code)
      const refusals: string[] = []
      for (;;) {
        const words = hub!.send.replace(/^larder /, '').replace('FILE', codes)
        await operate(zero, ...words.split(' '))
        // A hub that leaves ends its service at once: this does not require that it runs.
        const stateNow = async () => (await shown()).next_cell.state
        await expect.poll(stateNow, { timeout: WAIT_MS, interval: 200 }).not.toBe('ordered')
        const { state, error } = (await shown()).next_cell
        if (state === 'leaving' || state === 'moved') return refusals
        refusals.push(error)
        if (isFinal(error)) return refusals
      }
    }

    // A wrong code costs nothing: the hub stays in service, and the operator reads why.
    const refusals = await send('AAAAAAAA', (error) => !error.includes('fridge'))
    expect(refusals.at(-1)).toContain('invalid_claim_code')
    expect([readFileSync(join(board, 'enrolment.json'), 'utf8'), (await shown()).hub_status]).toEqual([
      identity,
      'maintenance',
    ])

    const startedAt = clock.monotonic()
    expect(await send(hub!.claim_code, () => false)).toEqual([])
    // The service ends, as for each restart; its supervisor starts it again.
    await expect
      .poll(() => failures, { timeout: WAIT_MS })
      .toEqual([expect.stringContaining('exit status 0')])
    failures.length = 0
    plant.start('hub')
    const online = async () => (await one.larder<{ online: boolean }>('hubs', 'show', '100000001')).online
    await becomes('the hub is online in the other cell', online)
    const seconds = (clock.monotonic() - startedAt) / 1000
    console.log(`the hub is online in the other cell after ${seconds.toFixed(1)} s`)
    await becomes(
      'the former cell knows that it has left',
      async () => (await shown()).next_cell.state === 'moved',
    )
    expect(await operate(zero, 'hubs', 'show', '1')).toMatchObject({
      hub_status: 'retired',
      draining_until: null,
      next_cell: { address: one.url, hub_id: 100_000_001, state: 'moved', error: null },
    })
    const door = await fetch(`${zero.cloudUrls[0]}/shop/1`, { redirect: 'manual' })
    expect([door.status, door.headers.get('location')]).toEqual([307, `${one.url}/shop/100000001`])
    await becomes('the hub has the counted stock', async () => {
      const now = (await room.hub()).stock.map(({ quantity }) => quantity)
      return JSON.stringify(now) === JSON.stringify(stock)
    })
    expect(existsSync(`${plant.places.journal}.former`)).toBe(true)

    const audited = await createAuditor(
      { ...plant, hubId: 100_000_001, databaseUrl: one.databaseUrl, cloudUrls: [one.url] },
      room,
    )
    onTestFinished(() => audited.close())

    const client = createClient({ urls: [one.url], runtime, tally: new Tally() })
    const db = openDatabase({ url: one.databaseUrl })
    onTestFinished(() => db.close())
    const product = await db.kysely.selectFrom('products').select('id').executeTakeFirstOrThrow()
    const there = { plant: { ...plant, hubId: 100_000_001 }, client, room }
    // The hub is online before its controllers have answered.
    const buyers: Awaited<ReturnType<typeof newCustomer>>[] = []
    await becomes('the hub takes an order', () =>
      newCustomer(there, `buyer ${Math.random()}`, [{ product_id: product.id, quantity: 1 }]).then(
        (made) => buyers.push(made) > 0,
        () => false,
      ),
    )
    const buyer = buyers[0]!
    // After the start of a hub each bin must first be proven empty.
    await becomes('the buyer pays', () =>
      buyer.pay().then(
        () => true,
        () => false,
      ),
    )
    await reaches(buyer, S.READY)
    await collect({ ...installation, client }, buyer)
    await reaches(buyer, S.COMPLETED)
    expect(await untilQuiet(audited, clock, WAIT_MS)).toBeUndefined()
    const { payments, refunds } = (await audited.evidence()).cloud
    expect([payments.map(({ status }) => status), refunds]).toEqual([['completed'], []])
    expect(failures).toEqual([])
  },
  400_000,
)
