import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { buildPackage } from '../../edge/packaging/build-package.ts'
import { readManifest } from '../../edge/packaging/manifest.ts'
import { thisProcessor } from '../../edge/packaging/target.ts'
import { Location, locationKey } from '../../protocol/model/location.ts'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { packageRoot } from '../support/programs.ts'
import { durableCommits } from './bare-commits.ts'
import { answer, dismiss, launch } from './children.ts'
import { ask, buy, findProducts } from './customer.ts'
import { ratios, type Section } from './figures.ts'
import { firstActuation } from './first-act.ts'
import { install } from './installation.ts'
import { processorMs, residentMb, writtenBytes } from './process-figures.ts'
import { progress } from './progress.ts'

export interface FootprintOptions {
  runtime: Runtime
  folder: string
  orders: number
  /** How long the idle hub is observed. Telemetry is written once in three minutes. */
  idleSeconds: number
}

/** Part of the hub's state: the stock of its rows. */
const Stock = z.object({ stock: z.array(z.object({ location: Location, quantity: z.int() })) })

const READY_MS = 60_000
const SETTLE_MS = 5000
const SAMPLES = 5
/** One customer per bin. */
const CUSTOMERS = 4
const PARTS = 5
const IDLE_PARTS = 2
const STARTS = 5

/** Cost of a part of the run, divided by its orders or hours. */
interface Cost {
  kilobytes: number[]
  processorMs: number[]
}

/** Makes and unpacks the hub's package. Returns its Node, and the command of the hub's service. */
async function packagedHub(folder: string): Promise<{ node: string; command: string[] }> {
  const root = packageRoot()
  if (!thisProcessor) throw new Error(`no package can be made for ${process.arch}`)
  const options = { root, name: 'hub', processor: thisProcessor, out: folder, images: [], progress } as const
  const tarball = (await buildPackage(options)).files.find((file) => file.endsWith('.tar.gz'))!
  execFileSync('tar', ['-xzf', tarball, '-C', folder])
  const [, program, flags] = readManifest(root, 'hub').commands.find(([name]) => name === 'edge')!
  const files = join(folder, 'larder/hub')
  const node = join(files, 'bin/node')
  return { node, command: [node, ...flags.split(','), join(files, program)] }
}

/** Starts to measure a process; returns a function that ends the measurement. */
function meter(pid: number): () => { bytes: number; ms: number } {
  const before = { bytes: writtenBytes(pid), ms: processorMs(pid) }
  return () => ({ bytes: writtenBytes(pid) - before.bytes, ms: processorMs(pid) - before.ms })
}

function add(cost: Cost, { bytes, ms }: { bytes: number; ms: number }, share: number): void {
  cost.kilobytes.push((bytes / 1000) * share)
  cost.processorMs.push(ms * share)
}

/**
 * Measures the packaged hub program at the real cloud and the real simulator: resident memory, and bytes
 * written to the disk. Mechanisms move 50 times as fast as real ones, which does not affect memory and disk.
 */
export async function benchFootprint(options: FootprintOptions): Promise<Section> {
  const { runtime, folder, orders, idleSeconds } = options
  const { clock } = runtime
  const packaged = await packagedHub(join(folder, 'package'))
  const hardware = join(packageRoot(), 'simulator/hardware/demo-hub.json')
  const installation = await install({
    folder,
    runtime,
    hardware: JSON.parse(readFileSync(hardware, 'utf8')) as z.input<typeof HardwareDescription>,
    run: {
      cloud: { GUESTS_PER_MINUTE: '1000000' },
      simulator: { SIMULATOR_SPEED: '50' },
      edge: { CLOSE_AFTER_EMPTY_MS: '100' },
    },
    hubCommand: packaged.command,
  })
  const idle = launch('idle-process', [], packaged.node)
  try {
    await answer(idle)
    installation.start()
    const { addresses, hubId } = installation
    const shop = { clock, baseUrl: addresses.baseUrl, simulatorUrl: addresses.simulatorUrl, hubId }
    const isReady = await waitUntilReady({
      clock,
      baseUrl: addresses.baseUrl,
      hubId,
      timeoutMs: READY_MS,
      isGivenUp: () => false,
    })
    installation.check()
    if (!isReady) throw new Error(`hub ${hubId} does not take orders; see ${installation.places.logs}`)
    await sleep(clock, SETTLE_MS)
    const hub = installation.pidOf('edge')
    const atStart = await sample(hub)
    const driven = await drive(hub)
    const afterOrders = await sample(hub)
    const bare = await sample(idle.pid!)
    const atRest = await watch(hub)
    installation.check()
    const atEnd = await sample(hub)
    const starts = await restart()
    const commit = durableCommits(join(folder, 'commits.sqlite'), 500).bytes / 500 / 1000
    return {
      title: `footprint of the hub program alone (${orders} orders of two units; idle for ${idleSeconds} s)`,
      figures: [
        { name: 'resident after the start', values: atStart, unit: 'MB', aim: 'at most 80' },
        { name: `resident after ${orders} orders`, values: afterOrders, unit: 'MB', aim: 'at most 80' },
        { name: 'resident after the idle time', values: atEnd, unit: 'MB', aim: 'at most 80' },
        { name: 'a Node program that does nothing', values: bare, unit: 'MB' },
        { name: 'ratio, after the orders', values: ratios(afterOrders, bare), unit: 'times' },
        { name: 'first actuation after the start', values: starts.hub, unit: 'ms', aim: 'at most 500' },
        { name: 'start of a Node program that does nothing', values: starts.bare, unit: 'ms' },
        {
          name: 'ratio, of the first actuation',
          values: ratios(starts.hub, starts.bare),
          unit: 'times',
        },
        { name: 'processor, per order', values: driven.processorMs, unit: 'ms' },
        { name: 'processor, per idle hour', values: atRest.processorMs.map((ms) => ms / 1000), unit: 's' },
        { name: 'written per order', values: driven.kilobytes, unit: 'kB', aim: 'at most 220' },
        { name: 'written per idle hour', values: atRest.kilobytes, unit: 'kB', aim: 'at most 1,000' },
        { name: 'one bare durable commit of 300 bytes', values: [commit], unit: 'kB' },
        {
          name: 'an order, in bare commits',
          values: driven.kilobytes.map((kb) => kb / commit),
          unit: 'times',
        },
        {
          name: 'an idle hour, in bare commits',
          values: atRest.kilobytes.map((kb) => kb / commit),
          unit: 'times',
        },
      ],
      notes: [
        'the hub, and the program that does nothing, run on the Node of the package',
        'first actuation: from the start of the process until a controller moves for an order that was in the journal, all three met',
        'written: write_bytes of /proc/<pid>/io, which counts journal, log and checkpoints; a kernel with large folios counts a whole folio for each written page',
        `an idle hour is reckoned from ${idleSeconds} s of idling with telemetry, in ${IDLE_PARTS} parts`,
      ],
    }

    /** Cost per order, for each part of the orders. Empty shelves are filled between the parts. */
    async function drive(pid: number): Promise<Cost> {
      const full = await stock()
      const enough = (await findProducts(shop)).length
      const parts = Math.max(PARTS, Math.ceil(orders / enough))
      const cost: Cost = { kilobytes: [], processorMs: [] }
      let next = 0
      for (let part = 1; part <= parts; part++) {
        const from = next
        const end = Math.round((orders * part) / parts)
        await fill(full)
        const products = await findProducts(shop)
        const spent = meter(pid)
        const customer = async (): Promise<void> => {
          while (next < end) {
            const n = next++
            await buy(shop, `bench-${n}`, products[n - from]!)
          }
        }
        await Promise.all(Array.from({ length: CUSTOMERS }, customer))
        if (end > from) add(cost, spent(), 1 / (end - from))
        progress.show(`footprint: ${end} of ${orders} orders`)
      }
      return cost
    }

    /** Cost per hour. */
    async function watch(pid: number): Promise<Cost> {
      const cost: Cost = { kilobytes: [], processorMs: [] }
      for (let part = 1; part <= IDLE_PARTS; part++) {
        const spent = meter(pid)
        await sleep(clock, (idleSeconds / IDLE_PARTS) * 1000)
        add(cost, spent(), (3600 * IDLE_PARTS) / idleSeconds)
        progress.show(`footprint: idle for ${(idleSeconds * part) / IDLE_PARTS} of ${idleSeconds} s`)
      }
      return cost
    }

    async function stock(): Promise<z.infer<typeof Stock>['stock']> {
      return Stock.parse(await ask('GET', `${addresses.edgeUrl}/api/state`, { bearer: hubToken() })).stock
    }

    /** Works like a restocker: fills every row, and reports it at the hub; the shop knows soon. */
    async function fill(full: z.infer<typeof Stock>['stock']): Promise<void> {
      const now = await stock()
      for (const { location, quantity: most } of full) {
        const { cabinet, shelf, row } = location
        const { quantity } = now.find((one) => locationKey(one.location) === locationKey(location))!
        const units = most - quantity
        if (units <= 0) continue
        const deed = { action: 'restock', target: `cabinet-${cabinet}`, shelf, row, units }
        await ask('POST', `${addresses.simulatorUrl}/api/hubs/${hubId}/act`, { body: deed })
        const body = { location, units }
        await ask('POST', `${addresses.edgeUrl}/api/stock/restock`, { bearer: hubToken(), body })
      }
      await sleep(clock, SETTLE_MS)
    }

    function hubToken(): string {
      return readFileSync(`${installation.places.journal}.token`, 'utf8').trim()
    }

    /** Milliseconds of each start: the hub until its first motion, and beside it a program that does nothing. */
    async function restart(): Promise<{ hub: number[]; bare: number[] }> {
      const products = await findProducts(shop)
      const times: { hub: number[]; bare: number[] } = { hub: [], bare: [] }
      for (let n = 0; n < STARTS; n++) {
        const product = products[n % products.length]!
        times.hub.push(await firstActuation(shop, installation, `start-${n}`, product))
        times.bare.push(await bareStart())
        progress.show(`footprint: ${n + 1} of ${STARTS} starts`)
      }
      return times
    }
  } finally {
    await installation.stop()
    await dismiss(idle)
  }

  async function bareStart(): Promise<number> {
    const started = clock.monotonic()
    const program = launch('idle-process', [], packaged.node)
    await answer(program)
    const took = clock.monotonic() - started
    await dismiss(program)
    return took
  }

  async function sample(pid: number): Promise<number[]> {
    const values: number[] = []
    for (let n = 0; n < SAMPLES; n++) {
      if (n > 0) await sleep(clock, 500)
      values.push(residentMb(pid))
    }
    return values
  }
}
