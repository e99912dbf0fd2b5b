import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommandLine } from '../../cloud/cli/command-line.ts'
import { hubCommands } from '../../cloud/cli/hubs.ts'
import { enrol } from '../../edge/enrolment/enrol.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { writeJson } from '../../simulator/demo/places.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { violationsOf } from '../invariants/check.ts'
import { onPath } from '../support/on-path.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { missing, service } from '../support/services.ts'
import { createClient } from './chaos/client.ts'
import { createAuditor, untilQuiet, type Auditor } from './chaos/collect.ts'
import { newCustomer } from './chaos/customer.ts'
import { createPlant, type Plant } from './chaos/plant.ts'
import { roomOf, type Room } from './chaos/room.ts'
import { emptyAllBins } from './chaos/staff.ts'
import { Tally } from './chaos/tally.ts'

const runtime = systemRuntime()
const { clock } = runtime
const WAIT = { timeout: 90_000, interval: 200 }
const CUSTOMERS = 3

interface Cell {
  plant: Plant
  room: Room
  auditor: Auditor
  /** The address of the cell behind the proxy. */
  url: string
}

describe.each(['nginx', 'haproxy'] as const)(
  'two cells behind one address of %s',
  (program) => {
    if (missing(program) !== undefined) {
      service(program)(`two cells sell at the same time behind one address of ${program}`, () => {})
      return
    }
    let folder: string
    let site: string
    let cells: [Cell, Cell]
    let endProxy: () => Promise<void>
    const failures: string[] = []

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'larder-cells-'))
      const [port] = (await freePorts(1)) as [number]
      site = `http://127.0.0.1:${port}`
      cells = [await makeCell(0, site), await makeCell(1, `${site}/c1`)]
      endProxy = startProxy(port, cells)
      for (const { plant } of cells) plant.start()
      for (const { plant, url } of cells) {
        const isGivenUp = (): boolean => failures.length > 0
        expect(
          await waitUntilReady({ clock, baseUrl: url, hubId: plant.hubId, timeoutMs: 90_000, isGivenUp }),
          failures.join('\n'),
        ).toBe(true)
      }
    }, 240_000)

    afterAll(async () => {
      await Promise.all(cells.map(({ auditor }) => auditor.close()))
      await Promise.all(cells.map(({ plant }) => plant.close()))
      await endProxy()
      rmSync(folder, { recursive: true })
    })

    async function makeCell(cell: 0 | 1, url: string): Promise<Cell> {
      const plant = await createPlant({
        runtime,
        folder: join(folder, `cell-${cell}`),
        kind: { type: 'bare' },
        speed: 5,
        ...(cell === 1 && { seedCommand: commandOf('test/process/cells/seed-cell') }),
        settings: { cloud: { CELL: `${cell}`, PUBLIC_URL: url, TRUSTED_PROXIES: '1' } },
        onFailure: (name, how, logFile) =>
          failures.push(
            `${name} of cell ${cell} ended (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`,
          ),
      })
      const { hardwareFile } = plant.places
      const hardware = HardwareDescription.parse(JSON.parse(readFileSync(hardwareFile, 'utf8')))
      writeJson(hardwareFile, { ...hardware, hubId: plant.hubId })
      const room = roomOf(plant, clock)
      return { plant, room, url, auditor: await createAuditor(plant, room) }
    }

    /** The proxy with its packaged file; only addresses and paths differ. */
    function startProxy(port: number, [zero, one]: readonly [Cell, Cell]): () => Promise<void> {
      const name = program === 'nginx' ? 'nginx-cells.conf' : 'haproxy-cells.cfg'
      const packaged = resolve(import.meta.dirname, '../../cloud/packaging/proxies', name)
      const path = join(folder, name)
      const addressOf = ({ plant }: Cell): string => plant.cloudUrls[0]!.replace('http://', '')
      writeFileSync(
        path,
        readFileSync(packaged, 'utf8')
          .replace('127.0.0.1:8080', addressOf(zero))
          .replace('127.0.0.1:8090', addressOf(one))
          .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
          .replace(/^ *ssl_certificate.*$/gm, '')
          .replace('bind :443 ssl crt /etc/larder/tls.pem', `bind 127.0.0.1:${port}`)
          .replace('/run/nginx.pid', join(folder, 'nginx.pid')),
      )
      const options = program === 'nginx' ? ['-e', 'stderr', '-g', 'daemon off;', '-c', path] : ['-f', path]
      const child = spawn(onPath(program)!, options, { stdio: 'inherit' })
      const exited = new Promise((done) => child.once('exit', done))
      return async () => {
        child.kill('SIGTERM')
        await exited
      }
    }

    const asOwner = (address: string, key: string): Promise<Response> =>
      fetch(address, { headers: { 'X-API-Key': key }, redirect: 'manual' })
    const keyOf = ({ plant }: Cell): string => plant.seed.owner.api_key

    test('the ids of hubs and the API keys name the cell', () => {
      expect(cells.map(({ plant }) => plant.hubId)).toEqual([1, 100_000_001])
      expect(cells.map((cell) => keyOf(cell).replace(/_.*/, ''))).toEqual(['lk', 'lk1'])
    })

    test('both cells sell at the same time, and the books of each add up', async () => {
      const sales = cells.flatMap((cell, index) =>
        Array.from({ length: CUSTOMERS }, (_, n) => buy(cell, n, `customer-${index}-${n}`)),
      )
      await Promise.all(sales)
      for (const { plant, room, auditor, url } of cells) {
        const client = createClient({ urls: [url], runtime, tally: new Tally() })
        const apiKey = plant.seed.owner.api_key
        const hub = { client, room, clock, tally: new Tally(), hubId: plant.hubId, apiKey }
        expect(await emptyAllBins(hub)).toBe(true)
        expect(await untilQuiet(auditor, clock, 60_000)).toBeUndefined()
        const evidence = await auditor.evidence()
        expect(evidence.cloud.payments.map(({ status }) => status)).toEqual(
          Array.from({ length: CUSTOMERS }, () => 'completed'),
        )
        expect(violationsOf(evidence)).toEqual([])
      }
    })

    async function buy({ plant, room, url }: Cell, n: number, name: string): Promise<void> {
      const client = createClient({ urls: [url], runtime, tally: new Tally() })
      const items = [{ product_id: plant.seed.shelves[n]!.product_id, quantity: 1 }]
      const customer = await newCustomer({ plant, client, room }, name, items)
      await customer.pay()
      const statusOf = async (): Promise<number> => (await customer.order()).processing_status
      await vi.waitUntil(async () => (await statusOf()) >= OrderStatus.READY, WAIT)
      await vi.waitUntil(() => customer.open(), WAIT)
      await customer.take()
      await vi.waitUntil(async () => (await statusOf()) === OrderStatus.COMPLETED, WAIT)
    }

    test('an API key reaches its own cell without a path, and is 401 at another cell', async () => {
      const [zero, one] = cells
      const ids = async (key: string) => (await asOwner(`${site}/api/v1/owners/hub_ids`, key)).text()
      expect(await ids(keyOf(one))).toContain('100000001')
      expect(await ids(keyOf(zero))).not.toContain('100000001')
      expect((await asOwner(`${one.url}/api/v1/owners/hub_ids`, keyOf(zero))).status).toBe(401)
      const hubOfZero = await asOwner(
        `${site}/api/v1/owners/hubs/bins?hub_id=${zero.plant.hubId}`,
        keyOf(one),
      )
      expect([403, 404]).toContain(hubOfZero.status)
    })

    test('a live stream by an API key, and an address that names a hub, lead to the cell', async () => {
      for (const cell of cells) {
        const stream = await asOwner(`${site}/api/v1/owners/events/stream`, keyOf(cell))
        expect(stream.status).toBe(200)
        await stream.body!.cancel()
        const hub = await fetch(`${site}/hubs/${cell.plant.hubId}`)
        expect([hub.status, hub.url]).toEqual([200, `${cell.url}/hubs/${cell.plant.hubId}`])
        expect(await hub.json()).toMatchObject({ id: cell.plant.hubId })
      }
      for (const path of ['/shop/100000001', '/hubs/100000001?hub=1', '/hubs/1?hub_id=100000001&hub=x']) {
        const answer = await fetch(site + path, { redirect: 'manual' })
        expect([answer.status, answer.headers.get('location')]).toEqual([307, `/c1${path}`])
      }
    })

    test('a claim code enrols a board only at the address of its cell', async () => {
      const [zero, one] = cells
      const { plant } = one
      const environment = { DATABASE_URL: plant.databaseUrl, CELL: '1' }
      const created = await runCommandLine(
        hubCommands,
        runtime,
        ['claim-code', `${plant.hubId}`],
        environment,
      )
      const { claim_code: code } = JSON.parse(created.stdout) as { claim_code: string }
      const enrolAt = (cloud: string) =>
        enrol({ cloud, code, store: join(folder, 'board', 'hub.sqlite'), hardware: undefined, runtime })
      await expect(enrolAt(zero.url)).rejects.toThrow('invalid_claim_code')
      expect(await enrolAt(one.url)).toMatchObject({ hub_id: plant.hubId })
    })

    test('a call for a cell that does not exist is 404 with the body of an error', async () => {
      const path = await fetch(`${site}/c9/hubs/1`)
      const key = await asOwner(`${site}/api/v1/owners/hub_ids`, `lk9_${'a'.repeat(8)}_${'b'.repeat(43)}`)
      for (const answer of [path, key]) {
        expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'application/json'])
        const { error, request_id } = (await answer.json()) as { error: { code: string }; request_id: string }
        expect(error.code).toBe('not_found')
        expect(answer.headers.get('x-request-id')).toBe(request_id)
      }
    })
  },
  180_000,
)
