import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { erasing } from '../../../edge/enrolment/erase.ts'
import { prepareMove } from '../../../edge/enrolment/move.ts'
import { downTopic } from '../../../protocol/mqtt/topics.ts'
import type { TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { seededChance } from '../../simulation/chance.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { PowerCut } from '../../world/update-board.ts'
import { cutPower, startDisk } from '../update/mortal-disk.ts'
import { board, next } from './support/moving-board.ts'

vi.mock('node:fs', async (original) => {
  const { mortal } = await import('../update/mortal-disk.ts')
  return mortal(await original<typeof import('node:fs')>())
})

/** Hub 1 gets the order to leave. Resolves when it has restarted, or has refused. */
function orderToLeave({ store, log }: ReturnType<typeof board>): Promise<boolean> {
  let handlers: TransportHandlers | undefined
  return new Promise((resolve) => {
    const over = erasing(
      {
        hubId: 1,
        store,
        log,
        now: () => 0,
        runtime: virtualRuntime(),
        ask: () => Promise.resolve(undefined),
        state: {
          set waits(_: string) {
            resolve(false)
          },
        },
        reasonToWait: () => undefined,
        restart: () => resolve(true),
      },
      (_options, given) => {
        handlers = given
        return { publish: () => Promise.resolve(true), close() {} }
      },
    )
    over({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
    handlers!.onMessage(downTopic(1, 'erase'), JSON.stringify({ next: next.answer.hub_id }))
  })
}

test('a power failure at any step of leaving loses no enrolment: the board leaves at that start, or at the next order', async () => {
  let [failures, started] = [0, 0]
  for (let cutAfter = 1; ; cutAfter += 1) {
    const moving = board({ isOrdered: false })
    const { store, folder, complete, state } = moving
    for (const suffix of ['', '-wal', '.unread'])
      writeFileSync(`${store}.former${suffix}`, 'of an earlier move')
    const disk = startDisk(folder, [])
    disk.cutAfter = cutAfter
    await orderToLeave(moving)
    if (disk.cutAfter > 0) {
      disk.cutAfter = Infinity
      break
    }
    failures += 1
    cutPower(disk, seededChance(cutAfter))
    complete()
    if (state().hub === 1) expect(await orderToLeave(moving)).toBe(true)
    else started += 1
    complete()
    expect([cutAfter, state()]).toMatchObject([
      cutAfter,
      { hub: 100_000_001, key: 'the next key', journal: [true, true], next: undefined, moving: undefined },
    ])
    expect([cutAfter, readFileSync(`${store}.former`, 'utf8').startsWith('SQLite')]).toEqual([cutAfter, true])
  }
  expect([failures > 5, started > 0, started < failures]).toEqual([true, true, true])
})

/** Another cell, where the code can be used once: it repeats its answer to the same request only. */
async function anotherCell() {
  let first: unknown
  const server = createServer((request, response) => {
    void text(request).then(() => {
      const id = request.headers['idempotency-key']
      first ??= id
      const refusal = { error: { code: 'invalid_claim_code', message: 'Used.' } }
      response.writeHead(id === first ? 200 : 403).end(JSON.stringify(id === first ? next.answer : refusal))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, cloud: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

service('openssl')(
  'a power failure at any step of the enrolment in the other cell costs no code, and the repeated order completes it',
  async () => {
    const authority = makeAuthority({ fromDay: -1, toDay: 30 })
    const { cert, key } = authority.issue('hub-1', 'DNS:hub-1', { fromDay: -1, toDay: 30 })
    onTestFinished(() => authority.remove())
    let failures = 0
    for (let cutAfter = 1; ; cutAfter += 1) {
      const folder = mkdtempSync(join(tmpdir(), 'larder-prepare-'))
      const store = join(folder, 'hub.sqlite')
      const paths = enrolmentFiles(store)
      const former = {
        [paths.enrolment]: '{"hub_id":1,"mqtt_url":"mqtts://c0.example:8883"}',
        [paths.key]: key,
        [paths.certificate]: cert,
        [paths.ca]: authority.ca,
      }
      for (const [path, file] of Object.entries(former)) writeFileSync(path, file)
      const { server, cloud } = await anotherCell()
      const prepare = () =>
        prepareMove({
          place: { store, hardware: undefined },
          next: { order: 5, cloud, hub_id: next.answer.hub_id, code: next.code },
          description: { ...demoHub, hubId: 1 },
          runtime: systemRuntime(),
          ask: () => Promise.resolve(undefined),
        })
      const disk = startDisk(folder, [])
      disk.cutAfter = cutAfter
      const end = await prepare().catch((error: unknown) => error)
      if (end instanceof PowerCut) {
        failures += 1
        cutPower(disk, seededChance(cutAfter))
        await prepare()
      }
      disk.cutAfter = Infinity
      const now = Object.keys(former).map((path) => readFileSync(path, 'utf8'))
      expect([cutAfter, now, existsSync(paths.next)]).toEqual([cutAfter, Object.values(former), true])
      server.close()
      rmSync(folder, { recursive: true })
      if (!(end instanceof PowerCut)) break
    }
    expect(failures).toBeGreaterThan(5)
  },
)
