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
/** Milliseconds between the power cuts of one update: a transfer takes about a second for each controller. */
const PAUSES_MS = [700, 150, 420, 90, 610, 230, 340, 50]

test('controllers get new firmware between sales, with power cuts and kills of the hub: each runs the newest in the end, and each unit was dispensed once', async () => {
  const commands = new Map<ProgramName, readonly string[]>([
    ['hub', ['env', 'FIRMWARE_AFTER_MS=1', 'FIRMWARE_TRIES=100', ...commandOf('edge/main')]],
  ])
  const { plant, room, come, becomes, welcomed, sells, failures } = await install({
    kind: { type: 'bare' },
    commands,
  })
  const images = join(dirname(plant.places.journal), 'firmware')
  mkdirSync(images, { recursive: true })
  plant.start()
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())

  const controllers = (await room.state()).controllers.map(({ controller }) => controller)
  const cutPower = (controller: string): Promise<unknown> =>
    fetch(`${plant.simulatorUrl}/api/hubs/${plant.hubId}/power`, {
      method: 'POST',
      body: JSON.stringify({ state: 'off', controller, for_ms: 200 }),
    })
  for (const build of [2, 3, 4]) {
    const image = makeImage({ build }, 'a program '.repeat(3000))
    writeFileSync(join(images, `larder-sim-${build}.img`), image)
    // Its next life reads the image, and begins the transfers.
    plant.kill('hub')
    await welcomed()
    for (const [index, ms] of PAUSES_MS.entries()) {
      await sleep(clock, ms)
      await cutPower(controllers[index % controllers.length]!)
      if (index === build) plant.kill('hub')
    }
    await sells()
    const customer = await come(1)
    // The hub may have lost a controller a moment ago: the shop then refuses the payment.
    await becomes('the customer pays', () =>
      customer.pay().then(
        () => true,
        // The answer of an earlier attempt may be lost.
        async () => (await customer.order()).processing_status >= S.QUEUED,
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
  await expect.poll(firmware, WAIT).toEqual(controllers.map(() => 'larder-sim-4'))
  expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])
}, 900_000)
