import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { OrderStatus as S } from '../../../protocol/model/order-status.ts'
import { holdsWithin, sleep } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { answers, waitUntilReady } from '../../../simulator/demo/programs.ts'
import { createClient } from './client.ts'
import { newCustomer, type Customer } from './customer.ts'
import { createPlant, type Plant, type PlantOptions } from './plant.ts'
import type { ProgramName } from './plant-settings.ts'
import { roomOf, type Room } from './room.ts'
import { addSecondHub } from './second-hub.ts'
import { Tally } from './tally.ts'

const runtime = systemRuntime()
const { clock } = runtime
export const WAIT_MS = 120_000

/** An order may wait in each state for as long as the test needs. */
const patient = {
  IDLE_ORDER_MS: '1800000',
  PAYMENT_HOLD_MS: '1800000',
  START_WITHIN_MS: '600000',
  PREPARE_TIMEOUT_MS: '600000',
  UNCLAIMED_TIMEOUT_MS: '1800000',
  ONLINE_WITHIN_MS: '60000',
}

export interface SecondHub {
  plant: Plant
  room: Room
  come: () => Promise<Customer>
  /** From now on, its program may end. */
  retires: () => void
}

interface InstallOptions extends Pick<PlantOptions, 'kind' | 'seedCommand'> {
  /** Commands of programs. Default: the present build. The next start of a program reads the map. */
  commands: Map<ProgramName, readonly string[]>
  /** Settings of the clouds and of the hubs, in addition to the test's own. */
  cloud?: Readonly<Record<string, string>>
  hub?: Readonly<Record<string, string>>
}

/** An installation that a test changes step by step, while customers use it. */
export async function install({ kind, seedCommand, commands, cloud, hub }: InstallOptions) {
  const data = mkdtempSync(join(tmpdir(), 'larder-installation-'))
  const failures: string[] = []
  const parts = {
    runtime,
    folder: data,
    speed: 6,
    settings: { cloud: { ...patient, DRAIN_MS: '1500', ...cloud }, hub: hub ?? {} },
    onFailure: (name: ProgramName, how: string, logFile: string) =>
      void failures.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`),
  }
  const commandOf = (name: ProgramName) => commands.get(name)
  const plant = await createPlant({ ...parts, kind, ...(seedCommand && { seedCommand }), commandOf })
  const closings = [() => plant.close()]
  onTestFinished(async () => {
    for (const close of closings.toReversed()) await close()
    rmSync(data, { recursive: true, force: true })
  })
  const tally = new Tally()
  const room = roomOf(plant, clock)
  const client = createClient({ urls: plant.cloudUrls, runtime, tally })
  const products = [...new Set(plant.seed.shelves.map(({ product_id }) => product_id))]
  let number = 0
  const come = (quantity: number): Promise<Customer> => {
    const items = [{ product_id: products[number % products.length]!, quantity }]
    return newCustomer({ plant, client, room }, `customer-${++number}`, items)
  }
  /**
   * Adds hub 2, with a simulator of its own; no program of it runs before `start`. `its` are the commands of its
   * programs, as those of `InstallOptions`.
   */
  async function addHub(its: InstallOptions['commands'] = new Map()): Promise<SecondHub> {
    let isRetired = false
    const second = await addSecondHub(plant, {
      ...parts,
      commandOf: (name) => its.get(name),
      onFailure: (...how) => isRetired || parts.onFailure(...how),
    })
    closings.push(() => second.close())
    const itsRoom = roomOf(second, clock)
    const items = [{ product_id: second.seed.shelves[0]!.product_id, quantity: 1 }]
    return {
      plant: second,
      room: itsRoom,
      retires: () => void (isRetired = true),
      come: () => newCustomer({ plant: second, client, room: itsRoom }, `customer-${++number}`, items),
    }
  }
  const becomes = (what: string, condition: () => Promise<boolean>): Promise<void> =>
    // A dead program does not come back.
    holdsWithin(clock, WAIT_MS, async () => failures.length > 0 || condition()).then((holds) =>
      expect([what, holds, failures]).toEqual([what, true, []]),
    )
  const reaches = (customer: Customer, status: S): Promise<void> =>
    becomes(`order ${customer.orderId} reaches ${status}`, async () => {
      return (await customer.order()).processing_status >= status
    })
  /** Customers can buy at every cloud. */
  const sells = (hubId = plant.hubId): Promise<void> =>
    becomes('the hub sells', async () => {
      const ready = plant.cloudUrls.map((baseUrl) =>
        waitUntilReady({ clock, baseUrl, hubId, timeoutMs: 1000, isGivenUp: () => false }),
      )
      return (await Promise.all(ready)).every(Boolean)
    })
  const welcomed = (): Promise<void> =>
    becomes('the hub is welcomed', async () => (await room.hub()).sync.phase === 'welcomed')
  const serves = (index = 0): Promise<void> =>
    becomes('the cloud serves', () => answers(`${plant.cloudUrls[index]}/readyz`))
  /** Stops each cloud in turn, and starts it after `change`, as an operator does behind a balancer. */
  async function roll(change: (name: ProgramName) => void): Promise<void> {
    for (const [index] of plant.cloudUrls.entries()) {
      const name = `cloud-${index + 1}` as ProgramName
      await plant.stop(name)
      change(name)
      plant.start(name)
      await serves(index)
      // Two more checks of the balancer.
      await sleep(clock, 2000)
    }
  }
  return {
    plant,
    room,
    client,
    tally,
    failures,
    come,
    addHub,
    becomes,
    reaches,
    welcomed,
    serves,
    sells,
    roll,
  }
}
export type Installation = Awaited<ReturnType<typeof install>>

export async function collect({ becomes, reaches }: Installation, customer: Customer): Promise<void> {
  await reaches(customer, S.READY)
  await becomes(`order ${customer.orderId} ends`, async () => {
    if ((await customer.order()).processing_status >= S.COMPLETED) return true
    await customer.open()
    await customer.take()
    return false
  })
}
