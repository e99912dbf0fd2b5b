import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { prepareMove } from '../../../edge/enrolment/move.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { service } from '../../support/services.ts'

const answer = {
  hub_id: 100_000_001,
  name: 'Lobby',
  certificate: 'the next certificate',
  ca: 'the next authority',
  mqtt_url: 'mqtts://c1.example:8883',
  expires_at: '2026-06-01T00:00:00.000Z',
  hardware: { ...demoHub, hubId: 100_000_001 },
  settings: {},
  desired_version: 4,
}

/** An enrolled hub 1, and another cell that gives its answers in turn. The broker there refuses the hub with `refusal`. */
async function board(answers: object[]) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-prepare-'))
  let asked = 0
  const server = createServer((_, response) => {
    asked += 1
    response.end(JSON.stringify(answers.shift()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const authority = makeAuthority({ fromDay: -1, toDay: 30 })
  onTestFinished(() => {
    server.close()
    authority.remove()
    rmSync(folder, { recursive: true })
  })
  const store = join(folder, 'hub.sqlite')
  const paths = enrolmentFiles(store)
  const { cert, key } = authority.issue('hub-1', 'DNS:hub-1', { fromDay: -1, toDay: 30 })
  const former = {
    [paths.enrolment]: '{"hub_id":1,"mqtt_url":"mqtts://c0.example:8883"}',
    [paths.key]: key,
    [paths.certificate]: cert,
    [paths.ca]: authority.ca,
  }
  for (const [path, text] of Object.entries(former)) writeFileSync(path, text)
  const cloud = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let refusal: string | undefined
  return {
    paths,
    asked: () => asked,
    refuse: (reason: string | undefined) => void (refusal = reason),
    /** The stored enrolment in the other cell. */
    next: () =>
      existsSync(paths.next)
        ? (JSON.parse(readFileSync(paths.next, 'utf8')) as { order: number; code: string })
        : undefined,
    move: (order: number, { code = 'K7QM2XRA', description = { ...demoHub, hubId: 1 } } = {}) =>
      prepareMove({
        place: { store, hardware: undefined },
        next: { order, cloud, hub_id: 100_000_001, code },
        description,
        runtime: systemRuntime(),
        ask: () => Promise.resolve(refusal),
      }),
  }
}

service('openssl')(
  'an order with the same code uses the earlier enrolment in the other cell again, and a failure keeps it: a retired hub needs it to leave',
  async () => {
    const hub = await board([answer, answer, answer])
    await hub.move(1)
    await hub.move(2)
    expect([hub.asked(), hub.next()]).toMatchObject([1, { order: 2, code: 'K7QM2XRA' }])
    hub.refuse('the broker refuses the hub')
    await expect(hub.move(3)).rejects.toThrow('the broker refuses the hub')
    expect([hub.asked(), hub.next()]).toMatchObject([1, { order: 2 }])
    // The other cell has revoked the earlier certificate.
    await expect(hub.move(4, { code: 'AAAAAAAA' })).rejects.toThrow('the broker refuses the hub')
    expect([hub.asked(), hub.next()]).toEqual([2, undefined])
    hub.refuse(undefined)
    await hub.move(5, { code: 'AAAAAAAA' })
    expect(hub.next()).toMatchObject({ order: 5, code: 'AAAAAAAA' })
  },
)

service('openssl')(
  'a repeated order keeps the enrolment that it has reported, because the cloud may order the board to leave already',
  async () => {
    const hub = await board([answer])
    await hub.move(1)
    hub.refuse('it does not answer')
    await expect(hub.move(1)).rejects.toThrow('it does not answer')
    expect(hub.next()).toMatchObject({ order: 1 })
  },
)

service('openssl')('an enrolment of another former hub is not used again', async () => {
  const hub = await board([answer, answer])
  await hub.move(1)
  writeFileSync(hub.paths.next, JSON.stringify({ ...hub.next(), former_hub_id: 2 }))
  await hub.move(2)
  expect([hub.asked(), hub.next()]).toMatchObject([2, { former_hub_id: 1 }])
})

service('openssl')('an exchange that fails keeps the earlier enrolment', async () => {
  const hub = await board([answer, { damaged: true }])
  await hub.move(1)
  await expect(hub.move(2, { code: 'AAAAAAAA' })).rejects.toThrow()
  expect(hub.next()).toMatchObject({ order: 1, code: 'K7QM2XRA' })
  // Its answer is unknown until the broker there accepts the earlier enrolment.
  expect(existsSync(hub.paths.attempt)).toBe(true)
  await hub.move(3)
  expect(existsSync(hub.paths.attempt)).toBe(false)
})

service('openssl')(
  'a hub does not move to a cell with another hardware description than the one that it uses',
  async () => {
    const hub = await board([answer, answer])
    const [first, ...rest] = demoHub.controllers
    const description = { ...demoHub, hubId: 1, controllers: [{ ...first!, port: 'another' }, ...rest] }
    const differs = 'the hardware description in the next cell differs from the one that this hub uses'
    await expect(hub.move(1, { description })).rejects.toThrow(differs)
    expect(hub.next()).toBeUndefined()
    await hub.move(2)
    // It has changed since.
    await expect(hub.move(3, { description })).rejects.toThrow(differs)
    expect(hub.next()).toMatchObject({ order: 2 })
  },
)
