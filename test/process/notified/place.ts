import { spawn, type ChildProcess } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SMTPServer } from 'smtp-server'
import { Webhook } from 'standardwebhooks'
import { expect, vi } from 'vitest'
import type { Alarm } from '../../../protocol/contract/owner-alarms.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { DemoFile } from '../../../simulator/demo/demo.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'
import { startDemoPrograms, type DemoPrograms } from '../../world/demo.ts'

const HUB = 1
/** Time-out for a busy machine; an idle one needs some seconds. */
const polling = { timeout: 90_000, interval: 250 }

interface Reported {
  type: string
  alarm: Alarm
  at: number
}

interface Order {
  order_id: number
  processing_status: number
  payment_status: string
}

export interface Facing {
  cabinet: number
  shelf: number
  row: number
  product_id: number
  blocked: boolean
}

/**
 * The demo's real programs, a real mail server, and a receiver of webhooks: from a row that fails to the
 * people who can act.
 */
export class Place {
  /** Deliveries without the cloud's signature. */
  readonly wrong: string[] = []
  readonly #webhooks: Reported[] = []
  readonly #mails: { at: number; text: string }[] = []
  readonly #receiver: Server
  readonly #mailServer: SMTPServer
  #demo: DemoPrograms | undefined
  #file: DemoFile | undefined
  #secret = ''
  #customers = 0

  constructor() {
    this.#mailServer = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData: (stream, _session, done) => {
        let text = ''
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
        stream.on('end', () => {
          // A mail breaks long lines with "=".
          this.#mails.push({ at: Date.now(), text: text.replaceAll('=\r\n', '') })
          done()
        })
      },
    })
    this.#receiver = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        try {
          new Webhook(this.#secret).verify(body, request.headers as Record<string, string>)
          const { type, data: alarm } = JSON.parse(body) as { type: string; data: Alarm }
          this.#webhooks.push({ type, alarm, at: Date.now() })
        } catch (error) {
          this.wrong.push(String(error))
        }
        response.end()
      })
    })
  }

  async open(ports: Readonly<Record<string, string>>): Promise<void> {
    await Promise.all(
      [this.#mailServer, this.#receiver].map(
        (server) => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve())),
      ),
    )
    this.#demo = await startDemoPrograms({
      ports,
      settings: {
        SIMULATOR_SPEED: '20',
        SMTP_URL: `smtp://127.0.0.1:${portOf(this.#mailServer.server)}`,
        WEBHOOK_ALLOW_PRIVATE: 'true',
      },
    })
    await this.#demo.ready()
    this.#file = this.#demo.file()
    const contact = ['contacts', 'add', '--owner', 'Springfield Vending', '--email', 'ann@larder.example']
    const added = run('cloud/cli/main', contact, {
      DATABASE_URL: this.#file.database_url,
      DATA_DIR: join(this.#demo.places.dataDir, '../cli'),
    })
    expect(await exit(added)).toBe(0)
    const webhook = await this.#owner('POST', 'webhooks', {
      url: `http://127.0.0.1:${portOf(this.#receiver)}/`,
      event_types: ['alarm.raised', 'alarm.cleared'],
    })
    this.#secret = (webhook.json as { secret: string }).secret
  }

  async close(): Promise<void> {
    await this.#demo?.stop()
    this.#receiver.closeAllConnections()
    this.#receiver.close()
    await new Promise<void>((resolve) => this.#mailServer.close(() => resolve()))
  }

  /** Raises a fault of the simulator. Returns a function that clears it. */
  async fault(type: string, target: string): Promise<() => Promise<unknown>> {
    const fault = await this.#room('POST', 'faults', { type, target, probability: 1 })
    const { id } = fault.json as { id: string }
    return () => this.#room('DELETE', `faults/${id}`)
  }

  /** A new customer orders one unit; returns the result. */
  async buy(productId: number): Promise<'had it' | 'was refunded' | 'was not charged'> {
    const { base_url } = this.#file!
    this.#customers += 1
    const who = { sub: `customer-${this.#customers}`, anonymous: true }
    const issued = await json('POST', `${base_url}/demo/identity/token`, {}, who)
    const { access_token: token } = issued.json as { access_token: string }
    const call = (method: string, path: string, body?: object) =>
      json(method, `${base_url}${path}`, { Authorization: `Bearer ${token}` }, body)
    const user = (await made<{ user_id: number }>(() => call('POST', '/users/user/bootstrap/guest'))).user_id
    const order = (await made<Order>(() => call('POST', `/users/${user}/orders?hub_id=${HUB}`))).order_id
    const path = `/users/${user}/orders/${order}`
    const item = { product_id: productId, quantity: 1 }
    const added = await call('PUT', `${path}/order_item?hub_id=${HUB}`, item)
    const payment = { order_id: order, payment_method_id: 'pm_card_visa' }
    const paid = added.status === 200 ? await call('POST', '/users/payments/pay', payment) : added
    const now = async () => (await call('GET', `${path}?hub_id=${HUB}`)).json as Order
    if (paid.status !== 200) {
      expect(paid.json).toMatchObject({ error: { code: 'insufficient_stock' } })
      expect(await now()).toMatchObject({ payment_status: 'unpaid' })
      return 'was not charged'
    }
    const prepared = await vi.waitFor(async () => {
      const seen = await now()
      expect(seen.processing_status).toBeGreaterThanOrEqual(OrderStatus.READY)
      return seen
    }, polling)
    if (prepared.processing_status !== OrderStatus.READY) {
      await vi.waitFor(async () => expect((await now()).payment_status).toBe('refunded'), polling)
      return 'was refunded'
    }
    const opened = await call('POST', `${path}/open-delivery?hub_id=${HUB}`)
    for (const { bin_number } of (opened.json as { results: { bin_number: number }[] }).results)
      await this.#takeFrom(bin_number)
    await vi.waitFor(async () => expect((await now()).processing_status).toBe(OrderStatus.COMPLETED), polling)
    return 'had it'
  }

  async facings(): Promise<Facing[]> {
    const { json } = await this.#owner('GET', `hubs/facings?hub_id=${HUB}`)
    return (json as Facing[]).filter(({ product_id }) => product_id)
  }

  /** A person empties the bins with left units. */
  async emptyBins(): Promise<void> {
    const { bins } = (await this.#room('GET', 'state')).json as { bins: { bin: string; units: number }[] }
    for (const { bin, units } of bins) {
      if (units === 0) continue
      const number = Number(bin.slice('bin-'.length))
      await this.#owner('POST', `controls/open_bin?hub=${HUB}&bin=${number}`)
      await this.#takeFrom(number)
    }
  }

  /** A person counts a row correctly. */
  async count({ cabinet, shelf, row }: Facing): Promise<void> {
    const { rows } = (await this.#room('GET', 'state')).json as { rows: (Facing & { units: number })[] }
    const { units } = rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)!
    const body = { hub_id: HUB, cabinet, shelf, row, quantity: units }
    expect((await this.#owner('PUT', 'hubs/facings', body)).status).toBe(200)
  }

  /**
   * Waits until the owner has an alarm of a row, or its end, by API, mail and webhook. Returns the slowest
   * delay in milliseconds since the hub's detection or the cloud's clearing.
   */
  async ownerKnows(facing: Facing, type: 'alarm.raised' | 'alarm.cleared'): Promise<number> {
    const subject = nameOf(facing)
    const isIt = (alarm: Alarm): boolean => alarm.kind === 'row_blocked' && alarm.subject === subject
    const isOver = type === 'alarm.cleared'
    const line = new RegExp(
      `^${isOver ? 'over' : 'warning'}: .*Row ${subject.slice('row '.length)} \\(.+\\) is blocked`,
      'm',
    )
    return vi.waitFor(async () => {
      const path = `alarms?hub_id=${HUB}&state=${isOver ? 'cleared' : 'open'}`
      const alarm = ((await this.#owner('GET', path)).json as { data: Alarm[] }).data.find(isIt)
      const reported = [
        this.#mails.find(({ text }) => line.test(text)),
        this.#webhooks.find((one) => one.type === type && isIt(one.alarm)),
      ]
      expect([subject, alarm !== undefined, ...reported.map((one) => one !== undefined)]).toEqual([
        subject,
        true,
        true,
        true,
      ])
      const since = Date.parse((isOver ? alarm!.cleared_at : alarm!.raised_at)!)
      return Math.max(...reported.map((one) => one!.at - since))
    }, polling)
  }

  #takeFrom(bin: number): Promise<void> {
    return vi.waitFor(async () => {
      const { status } = await this.#room('POST', 'act', { action: 'take_items', target: `bin-${bin}` })
      expect(status).toBe(200)
    }, polling)
  }

  #owner(method: string, path: string, body?: object) {
    const { base_url, owner } = this.#file!
    return json(method, `${base_url}/api/v1/owners/${path}`, { 'X-API-Key': owner.api_key }, body)
  }

  #room(method: string, path: string, body?: object) {
    return json(method, `${this.#file!.simulator_url}/api/hubs/${HUB}/${path}`, {}, body)
  }
}

const nameOf = ({ cabinet, shelf, row }: Facing): string => `row ${cabinet}/${shelf}/${row}`

/** Repeats a call until it succeeds, and returns its answer. A customer whose hub did not answer in time, as on a busy machine, tries again. */
const made = <T>(call: () => Promise<{ status: number; json: unknown }>): Promise<T> =>
  vi.waitFor(async () => {
    const { status, json: body } = await call()
    expect([status, body]).toEqual([expect.toBeOneOf([200, 201]), body])
    return body as T
  }, polling)

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port

function run(program: string, args: string[], environment: Record<string, string>): ChildProcess {
  const [node, ...main] = commandOf(program)
  const env = { ...process.env, ...environment }
  return spawn(node, [...main, ...args], { cwd: packageRoot(), env, stdio: ['ignore', 'pipe', 'inherit'] })
}

const exit = (child: ChildProcess): Promise<number | null> =>
  child.exitCode !== null
    ? Promise.resolve(child.exitCode)
    : new Promise((resolve) => child.once('exit', resolve))

async function json(method: string, url: string, headers: Record<string, string>, body?: object) {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, json: await answer.json() }
}
