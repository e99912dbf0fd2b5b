import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { service } from '../support/services.ts'
import { enrolledInstallation, secondCell, type Moved } from './cells/two-cells.ts'
import { WAIT_MS } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'

const { clock } = systemRuntime()

service('openssl')(
  'a hub moves in spite of a silent broker, a reason to wait after its retirement, a revocation in the other cell, a former cell that is not reached and kills at any moment, and its former cell shows each state',
  async () => {
    const installation = await enrolledInstallation()
    const { plant, room, line, becomes, failures } = installation
    const { owner } = await operate(plant, 'hubs', 'show', '1')
    const one = await secondCell()
    const board = dirname(plant.places.journal)
    const isThere = (name: string) => existsSync(join(board, `enrolment.${name}.json`))
    await operate(plant, 'hubs', 'set', '1', '--maintenance', 'on')
    const file = join(one.folder, 'owner.json')
    await becomes('the hub has the change', async () => {
      const words = ['export', String(owner), '--hubs', '1', '--to', file]
      return operate(plant, 'owners', ...words).then(
        () => true,
        () => false,
      )
    })
    const { hubs } = await one.larder<Moved>('owners', 'import', file)
    const codes = join(one.folder, 'code')
    writeFileSync(codes, hubs[0]!.claim_code)
    const shown = async () =>
      (
        (await operate(plant, 'hubs', 'show', '1')) as unknown as {
          next_cell: { state: string; error: string | null }
        }
      ).next_cell
    const order = () =>
      operate(
        plant,
        ...hubs[0]!.send
          .replace(/^larder /, '')
          .replace('FILE', codes)
          .split(' '),
      )
    const answered = async () => {
      await becomes('the hub has answered', async () => (await shown()).state !== 'ordered')
      return shown()
    }

    one.line.stall(['down'], 600_000)
    await becomes('the hub asks the silent broker', async () => {
      await order()
      const { state, error } = await answered()
      expect(state).toBe('failed')
      return error!.includes('does not take this hub (mqtts:')
    })
    one.line.clearFaults()

    // A person takes a part out of service between the answer of the hub and its order to leave.
    const hold = (held: boolean) => room.atHub('/bins/1/hold', { held })
    const answers = () =>
      readFileSync(plant.places.log('hub'), 'utf8').split(
        /is enrolled in another cell|does not move to another/,
      ).length
    await becomes('the hub is retired and must wait', async () => {
      const before = answers()
      await order()
      const end = clock.monotonic() + WAIT_MS
      while (answers() === before && clock.monotonic() < end) await sleep(clock, 20)
      expect(await hold(true)).toBe(true)
      const { state } = await answered()
      if (state === 'leaving') return true
      expect(await hold(false)).toBe(true)
      return false
    })
    const reason = 'a person at the hub has taken a part of it out of service'
    await becomes('the former cell has the reason', async () => (await shown()).error === reason)
    const page = async () => (await room.hub()) as unknown as { waits_to_leave: string | null }
    expect(await page()).toMatchObject({ waits_to_leave: reason })
    plant.kill('hub')
    await becomes('the page has the reason again', async () => (await page()).waits_to_leave === reason)
    expect(await shown()).toEqual(expect.objectContaining({ state: 'leaving', error: reason }))

    // Its enrolment in the other cell is revoked meanwhile.
    await one.larder('hubs', 'revoke', '100000001')
    expect(await hold(false)).toBe(true)
    const refusal = 'the other cell does not take this hub'
    await becomes(
      'the former cell knows that the other one refuses the hub',
      async () => (await shown()).error?.startsWith(refusal) === true,
    )
    expect([(await shown()).state, isThere('moving')]).toEqual(['leaving', false])
    expect((await page()).waits_to_leave).toContain(refusal)
    const { claim_code: another } = await one.larder<{ claim_code: string }>(
      'hubs',
      'claim-code',
      '100000001',
    )
    writeFileSync(codes, another)

    // The former cell is not reached when the hub arrives.
    const leaves = expect.poll(() => isThere('moving'), { timeout: WAIT_MS, interval: 5 }).toBe(true)
    await Promise.all([leaves, order()])
    line.cut()
    line.bar()
    await expect
      .poll(() => failures, { timeout: WAIT_MS })
      .toEqual([expect.stringContaining('exit status 0')])
    failures.length = 0
    expect((await shown()).state).toBe('leaving')
    // The supervisor starts it again each time.
    for (const afterMs of [300, 500, 700, 900, 1200]) {
      await sleep(clock, afterMs)
      plant.kill('hub')
    }
    const online = async () => (await one.larder<{ online: boolean }>('hubs', 'show', '100000001')).online
    await becomes('the hub is online in the other cell', online)
    expect([(await shown()).state, isThere('former')]).toEqual(['leaving', true])
    line.clearFaults()
    plant.kill('hub')
    await becomes('the former cell knows that it has left', async () => (await shown()).state === 'moved')
    await becomes('the board knows that', async () => !isThere('former'))
    expect(failures).toEqual([])
  },
  600_000,
)
