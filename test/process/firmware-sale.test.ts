import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { z } from 'zod'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import { service } from '../support/services.ts'
import { createClient } from './chaos/client.ts'
import { newCustomer } from './chaos/customer.ts'
import { createPlant } from './chaos/plant.ts'
import { roomOf } from './chaos/room.ts'
import { Tally } from './chaos/tally.ts'
import { runExampleFirmware } from './example-firmware.ts'
import { demoHub } from '../support/demo-hub.ts'

/**
 * The edges of a motor and the log of acts are written at the same instant, by clocks that are read one after
 * the other.
 */
const SAME_MS = 25

const Dump = z.object({
  timescale: z.string(),
  signal: z.array(
    z.object({
      type: z.string(),
      signalName: z.string(),
      wave: z.array(z.tuple([z.string(), z.string()])).default([]),
    }),
  ),
})
type Wave = [time: string, value: string][]
const { parse } = createRequire(import.meta.url)('vcd-parser') as {
  parse: (text: string) => Promise<unknown>
}

service('python3')(
  'the example firmware sells an order through the unchanged hub, and the VCD dump of the wire agrees with the physical motions',
  async () => {
    const runtime = systemRuntime()
    const folder = mkdtempSync(join(tmpdir(), 'larder-firmware-'))
    const firmware = runExampleFirmware(
      folder,
      demoHub.controllers.map(({ id }) => id),
    )
    const failures: string[] = []
    const plant = await createPlant({
      runtime,
      folder,
      kind: { type: 'bare' },
      speed: 5,
      settings: {
        simulator: { BOARDS: firmware.boards, SIMULATOR_WIRE_KEPT: '200000' },
        hub: { SERIAL_SILENT_MS: '3000' },
        cloud: { UNCLAIMED_TIMEOUT_MS: '120000' },
      },
      onFailure: (name, how, logFile) =>
        failures.push(`${name}: ${how}: ${readFileSync(logFile, 'utf8').slice(-600)}`),
    })
    try {
      plant.start()
      const isUp = await waitUntilReady({
        clock: runtime.clock,
        baseUrl: plant.cloudUrls[0]!,
        hubId: plant.hubId,
        timeoutMs: 60_000,
        isGivenUp: () => failures.length > 0,
      })
      expect([failures, isUp]).toEqual([[], true])
      const room = roomOf(plant, runtime.clock)
      const client = createClient({ urls: plant.cloudUrls, runtime, tally: new Tally() })
      const items = [
        { product_id: 1, quantity: 2 },
        { product_id: 2, quantity: 1 },
      ]
      const buyer = await newCustomer({ plant, client, room }, 'of-the-example', items)
      await buyer.pay()
      await vi.waitUntil(
        async () => {
          const { processing_status: status } = await buyer.order()
          if (status === OrderStatus.READY) await buyer.open()
          if (status === OrderStatus.COLLECTING) await buyer.take()
          return status >= OrderStatus.COMPLETED
        },
        { timeout: 90_000, interval: 200 },
      )
      const { processing_status, refunded_amount } = (await buyer.order()) as {
        processing_status: number
        refunded_amount?: unknown
      }
      expect([processing_status, refunded_amount ?? 0]).toEqual([OrderStatus.COMPLETED, 0])
      expect(firmware.complaints()).toBe('')
      await vi.waitUntil(
        async () => (await room.state()).bins.every(({ door, lift }) => door === 'closed' && lift === 'down'),
        { timeout: 20_000 },
      )

      const acts = (await room.actuations()) as unknown as Act[]
      const motors = acts.filter(({ operation_id }) => operation_id !== undefined)
      expect(motors.filter(({ action }) => action === 'dispense').map(({ detail }) => detail.fallen)).toEqual(
        [1, 1, 1],
      )
      const operations = motors.map(({ operation_id }) => operation_id)
      expect(new Set(operations).size).toBe(operations.length)

      const text = await (await fetch(`${plant.simulatorUrl}/api/hubs/${plant.hubId}/wire.vcd`)).text()
      const dump = Dump.parse(await parse(text))
      expect(dump.timescale).toBe('1us')
      const waveOf = (name: string): Wave =>
        dump.signal.find(({ signalName }) => signalName === name)?.wave ?? []
      /** When a signal changed to a level, in milliseconds of the dump's time axis. */
      const edges = (name: string, level: '0' | '1'): number[] =>
        waveOf(name)
          .filter(([, value], index, wave) => value === level && index > 0 && wave[index - 1]![1] !== level)
          .map(([time]) => Number(time) / 1000)
      const devices = [...new Set(motors.map(({ device }) => device))]
      const runs = (device: string): string => `${device.replaceAll('-', '_')}_runs`
      /** Both time axes start at the end of the first motion of a door or lift. */
      const doors = motors.filter(({ action }) => action !== 'dispense')
      const origin = Date.parse(doors[0]!.at) - edges(runs(doors[0]!.device), '0')[0]!
      for (const device of devices) {
        const own = motors.filter((act) => act.device === device).map(({ at }) => Date.parse(at))
        const ended = edges(runs(device), '0').map((ms) => ms + origin)
        const begun = edges(runs(device), '1').map((ms) => ms + origin)
        expect([device, begun.length, ended.length]).toEqual([device, own.length, own.length])
        own.forEach((at, index) => {
          expect(Math.abs(at - ended[index]!)).toBeLessThan(SAME_MS)
          expect(begun[index]!).toBeLessThan(ended[index]!)
        })
      }
      const locks = acts.filter(({ action }) => action === 'unlock' || action === 'lock')
      for (const name of new Set(locks.map(({ device }) => device)))
        expect([...edges(`${name}_lock`, '1'), ...edges(`${name}_lock`, '0')]).toHaveLength(
          locks.filter(({ device }) => device === name).length,
        )
      const events = dump.signal.filter(({ type }) => type === 'event').map(({ signalName }) => signalName)
      for (const { id } of demoHub.controllers)
        expect(events).toEqual(
          expect.arrayContaining([
            `${id.replaceAll('-', '_')}_to_hub`,
            `${id.replaceAll('-', '_')}_to_controller`,
          ]),
        )
      expect(failures).toEqual([])
    } finally {
      await plant.close()
      await firmware.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
  240_000,
)
