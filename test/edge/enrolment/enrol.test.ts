import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { enrol } from '../../../edge/enrolment/enrol.ts'
import { serveEnrolment } from '../../../edge/enrolment/enrolment-page.ts'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { DesiredStates } from '../../../edge/desired/desired-states.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { silentLog } from '../../../protocol/model/log.ts'

const answer = {
  hub_id: 1,
  name: 'Lobby',
  certificate: 'certificate',
  ca: 'ca',
  mqtt_url: 'mqtts://hubs.example:8883',
  expires_at: '2026-06-01T00:00:00.000Z',
  hardware: null,
  settings: {},
  desired_version: 1,
}

/** A cloud with a certificate of these days, which gives its answers in turn; null cuts the connection. */
async function world(validity: { fromDay: number; toDay: number }, answers: (object | null)[]) {
  const authority = makeAuthority({ fromDay: -30, toDay: 365 })
  const { cert, key } = authority.issue('localhost', 'DNS:localhost', validity)
  const requests: { path: unknown; key: unknown; body: string }[] = []
  const server = createServer({ cert, key } satisfies ServerOptions, (request, response) => {
    void text(request).then((body) => {
      requests.push({ path: request.url, key: request.headers['idempotency-key'], body })
      const next = answers.shift()
      if (!next) request.socket.destroy()
      else response.writeHead('error' in next ? 403 : 200).end(JSON.stringify(next))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const folder = mkdtempSync(join(tmpdir(), 'larder-enrol-'))
  vi.stubEnv('NODE_EXTRA_CA_CERTS', authority.caPath)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    server.close()
    authority.remove()
    rmSync(folder, { recursive: true })
  })
  const store = join(folder, 'hub.sqlite')
  const cloud = `https://localhost:${(server.address() as AddressInfo).port}`
  return {
    requests,
    cloud,
    store,
    paths: enrolmentFiles(store),
    enrol: (code = 'K7QM2XRA', mount = '') =>
      enrol({ cloud: cloud + mount, code, store, hardware: undefined, runtime: systemRuntime() }),
  }
}

test('a board with a clock that is years late enrols at a cloud with a certificate that begins later', async () => {
  const { enrol: run, paths } = await world({ fromDay: 100, toDay: 190 }, [answer])
  expect(await run()).toMatchObject({ hub_id: 1, name: 'Lobby' })
  expect(readFileSync(paths.certificate, 'utf8')).toBe('certificate')
  const expired = await world({ fromDay: -20, toDay: -1 }, [answer])
  await expect(expired.enrol()).rejects.toThrow("the cloud's certificate has expired")
})

test('a lost answer costs no code, because the board repeats the same request, and a refused code is forgotten', async () => {
  const refusal = { error: { code: 'invalid_claim_code', message: 'This claim code is not valid.' } }
  const {
    enrol: run,
    requests,
    paths,
  } = await world({ fromDay: -1, toDay: 90 }, [null, answer, refusal, answer])
  await expect(run()).rejects.toThrow('is not reached')
  await run()
  expect(requests[1]).toEqual(requests[0])
  expect(existsSync(paths.attempt)).toBe(false)
  await expect(run('AAAAAAAA')).rejects.toThrow('invalid_claim_code')
  await run('AAAAAAAA')
  expect(requests[3]!.key).not.toBe(requests[2]!.key)
})

test('the form of the enrolment keeps the typed address and code after an error', async () => {
  const refusal = { error: { code: 'invalid_claim_code', message: 'This claim code is not valid.' } }
  const { cloud, store } = await world({ fromDay: -1, toDay: 90 }, [refusal, answer])
  let url = ''
  const ended = serveEnrolment({
    local: { host: '127.0.0.1', port: 0, bounds: defaultLimits.http },
    place: { store, hardware: undefined },
    runtime: systemRuntime(),
    log: { ...silentLog, warn: (fields) => void ({ url } = fields as { url: string }) },
    notify: () => {},
    watchdogMs: undefined,
  })
  await expect.poll(() => url).not.toBe('')
  const submit = async (code: string): Promise<[number, string]> => {
    const body = new URLSearchParams({ cloud, code })
    const response = await fetch(`${url}/enroll`, { method: 'POST', body })
    return [response.status, await response.text()]
  }
  const [status, form] = await submit('A"<b>')
  expect(status).toBe(422)
  expect([form.match(/value="[^"]*"/g)]).toEqual([[`value="${cloud}"`, 'value="A&#34;&#60;b&#62;"']])
  expect((await submit('K7QM2XRA'))[0]).toBe(200)
  await ended
})

test('a board that enrols at a cloud without releases no longer trusts the root of its former cloud', async () => {
  const { enrol: run, store } = await world({ fromDay: -1, toDay: 90 }, [answer])
  const { root } = updateFiles(store)
  mkdirSync(dirname(root), { recursive: true })
  writeFileSync(root, 'the root of another cloud')
  await run()
  expect(existsSync(root)).toBe(false)
})

test('a board enrols at a cloud that a proxy mounts below a path', async () => {
  const { enrol: run, requests } = await world({ fromDay: -1, toDay: 90 }, [answer, answer])
  await run('K7QM2XRA', '/larder')
  await run('K7QM2XRB', '/larder/')
  expect(requests.map(({ path }) => path)).toEqual(['/larder/api/v1/enroll', '/larder/api/v1/enroll'])
})

const described = { ...answer, hardware: demoHub, desired_version: 4 }
const descriptionOf = (store: string) => enrolmentFiles(store).hardware

test('a board without a hardware description stores that of the cloud, and has the version of the cloud', async () => {
  const { enrol: run, store } = await world({ fromDay: -1, toDay: 90 }, [described])
  await run()
  expect(JSON.parse(readFileSync(descriptionOf(store), 'utf8'))).toEqual(HardwareDescription.parse(demoHub))
  const desired = new DesiredStates(store)
  expect([desired.isWaiting(), desired.report()]).toEqual([false, { applied: 4, failed: null }])
})

test('a board that has the hardware description of the cloud already has its version', async () => {
  const { enrol: run, store } = await world({ fromDay: -1, toDay: 90 }, [described])
  writeFileSync(descriptionOf(store), JSON.stringify(HardwareDescription.parse(demoHub)))
  await run()
  const desired = new DesiredStates(store)
  expect([desired.isWaiting(), desired.report()]).toEqual([false, { applied: 4, failed: null }])
})

test('a board that enrols with another hardware description keeps its file, reports no version, and tries the description of the cloud', async () => {
  const { enrol: run, store } = await world({ fromDay: -1, toDay: 90 }, [described])
  const { controllers, ...rest } = HardwareDescription.parse(demoHub)
  const moved = controllers.map((each) => ({ ...each, port: `${each.port}-former` }))
  const former = JSON.stringify({ ...rest, controllers: moved })
  writeFileSync(descriptionOf(store), former)
  await run()
  expect(readFileSync(descriptionOf(store), 'utf8')).toBe(former)
  const desired = new DesiredStates(store)
  expect([desired.isWaiting(), desired.report()]).toEqual([true, { applied: null, failed: null }])
  // The first snapshot of the cloud brings the same version.
  desired.offer({ version: 4, settings: {}, hardware: demoHub })
  desired.begin([])
  expect(new DesiredStates(store).overrides()).toEqual({ version: 4, settings: {}, hardware: demoHub })
})

test.each([
  ['of another hub', JSON.stringify({ ...HardwareDescription.parse(demoHub), hubId: 5 })],
  ['that is damaged', '{'],
])('a hardware description %s is renamed, and the board starts with that of the cloud', async (_, former) => {
  const { enrol: run, store } = await world({ fromDay: -1, toDay: 90 }, [described])
  const path = descriptionOf(store)
  writeFileSync(path, former)
  await run()
  expect(readFileSync(`${path}.former`, 'utf8')).toBe(former)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(HardwareDescription.parse(demoHub))
  expect(new DesiredStates(store).report()).toEqual({ applied: 4, failed: null })
})
