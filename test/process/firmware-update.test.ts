import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { makeImage } from '../../simulator/firmware/image.ts'
import { violationsOf } from '../invariants/check.ts'
import { commandOf } from '../support/programs.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { install, WAIT_MS } from './chaos/installation.ts'
import type { ProgramName } from './chaos/plant-settings.ts'

const { clock } = systemRuntime()
const WAIT = { timeout: 300_000, interval: 500 }
/** Between a sale and the next fault, transfers run for this time. */
const PAUSE_MS = 1500

test('controllers get a new firmware between sales, power cuts and kills of the hub: each runs it in the end, and each unit was dispensed once', async () => {
  const commands = new Map<ProgramName, readonly string[]>([
    ['hub', ['env', 'FIRMWARE_AFTER_MS=1', ...commandOf('edge/main')]],
  ])
  const { plant, room, come, becomes, sells, failures } = await install({ kind: { type: 'bare' }, commands })
  const images = join(dirname(plant.places.journal), 'firmware')
  mkdirSync(images, { recursive: true })
  writeFileSync(join(images, 'larder-sim-2.img'), makeImage({ build: 2 }, 'a program '.repeat(2400)))
  plant.start()
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())

  const controllers = (await room.state()).controllers.map(({ controller }) => controller)
  const cutPower = (controller: string): Promise<unknown> =>
    fetch(`${plant.simulatorUrl}/api/hubs/${plant.hubId}/power`, {
      method: 'POST',
      body: JSON.stringify({ state: 'off', controller, for_ms: 500 }),
    })
  for (let round = 0; round < 4; round += 1) {
    await sleep(clock, PAUSE_MS)
    if (round % 2 === 1) plant.kill('hub')
    else await cutPower(controllers[round % controllers.length]!)
    await sells()
    const customer = await come(1)
    // The hub may have lost a controller a moment ago: the shop then refuses the payment.
    await becomes('the customer pays', () =>
      customer.pay().then(
        () => true,
        () => false,
      ),
    )
    await becomes(`order ${customer.orderId} ends`, async () => {
      const { processing_status: status } = await customer.order()
      if (status >= S.COMPLETED) return true
      if (status >= S.READY) {
        await customer.open()
        await customer.take()
      }
      return false
    })
  }

  const firmware = async (): Promise<(string | null)[]> => {
    const { links } = (await room.hub()) as unknown as { links: { firmware: string | null }[] }
    return links.map((link) => link.firmware)
  }
  await expect.poll(firmware, WAIT).toEqual(controllers.map(() => 'larder-sim-2'))
  expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])
}, 900_000)
