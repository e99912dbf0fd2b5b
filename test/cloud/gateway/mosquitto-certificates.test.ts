import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { bundleOf, createAuthority, newSerial, openAuthorities } from '../../../cloud/enrolment/authority.ts'
import { sessionWork } from '../../../cloud/enrolment/end-sessions.ts'
import { revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { SESSION_WORK } from '../../../cloud/gateway/hub-certificates.ts'
import { CLOCK_TOLERANCE_MS } from '../../../cloud/gateway/lost-certificates.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { isCertificateRevoked } from '../../../protocol/mqtt/connection-problem.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { loadX509, P256, privatePem } from '../../../protocol/x509.ts'
import { onPath } from '../../support/on-path.ts'
import { freePorts } from '../../support/ports.ts'
import { service } from '../../support/services.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const runtime = systemRuntime()
const now = runtime.clock.now()
const validity = { from: now - CLOCK_TOLERANCE_MS, until: now + CLOCK_TOLERANCE_MS }

/** Mosquitto with the certificates and the lists of the cloud. `isRotated`: there is a former authority, too. */
async function world({ isRotated = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-mosquitto-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  for (const id of [1, 2]) await seedHub(db, id)
  const context = testContext(db, runtime)
  await openAuthorities(context)
  if (isRotated) await createAuthority(context, 2)
  const authorities = await openAuthorities(context)
  const authority = authorities.at(-1)!
  const server = await authority.makeServer(['127.0.0.1'], validity)
  const [port] = (await freePorts(1)) as [number]
  /** The hubs that were ordered to erase their secrets. */
  const ordered: number[] = []
  const work = sessionWork(context, {
    mqttUrl: `mqtts://127.0.0.1:${port}`,
    brokerCa: () => authority.certificate,
    isEmbedded: false,
    erase: (hubId) => ordered.push(hubId),
  })[SESSION_WORK]!
  const endSession = () => work.run({ kind: SESSION_WORK, subject: '1', attempts: 1 })
  /** The lists of all authorities, each with its own serial numbers. The newest authority is the first. */
  const list = async (...serials: readonly (readonly string[])[]) => {
    const rows = (n: number) => (serials[n] ?? []).map((serial) => ({ serial, revokedAt: now }))
    return (await Promise.all(authorities.map((by, n) => by.listRevoked(rows(n), validity)))).join('')
  }
  async function reload(...serials: readonly (readonly string[])[]): Promise<void> {
    file('crl.pem', await list(...serials))
    mosquitto.kill('SIGHUP')
  }
  const configuration = file(
    'mosquitto.conf',
    [
      ...(process.getuid?.() === 0 ? ['user root'] : []),
      `listener ${port} 127.0.0.1`,
      `cafile ${file('ca.pem', bundleOf(authorities))}`,
      `certfile ${file('server.pem', server.cert)}`,
      `keyfile ${file('server-key.pem', server.key)}`,
      `crlfile ${file('crl.pem', await list())}`,
      'require_certificate true',
      'use_identity_as_username true',
      'use_username_as_clientid true',
      `acl_file ${file('acl', 'pattern write larder/v1/%u/up/#\npattern read larder/v1/%u/down/#\n')}`,
      '',
    ].join('\n'),
  )
  const mosquitto = spawn(onPath('mosquitto')!, ['-c', configuration], { stdio: 'ignore' })
  onTestFinished(() => void mosquitto.kill('SIGKILL'))

  async function certify(hubId: number, by = authority) {
    const { PublicKey } = await loadX509()
    const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
    const serial = newSerial(runtime.random)
    const publicKey = await PublicKey.create(keys.publicKey)
    const cert = await by.signHub(publicKey, { hubId, serial, ...validity })
    const row = {
      hub_id: hubId,
      issued_at: now,
      expires_at: validity.until,
      revoked_at: null,
      authority: by.id,
    }
    await db.kysely
      .insertInto('hub_certificates')
      .values({ serial, ...row })
      .execute()
    return { serial, user: `hub-${hubId}`, client: { cert, key: await privatePem(keys.privateKey) } }
  }
  type Certified = Awaited<ReturnType<typeof certify>>
  /** Opens a session with a certificate. `ended` resolves when the session ends, `reason` to its reason. */
  function open({ user, client }: Certified) {
    const transportOf = mqttTransport({
      urls: [`mqtts://127.0.0.1:${port}`],
      user,
      password: undefined,
      client: () => client,
      ca: authority.certificate,
      runtime,
    })
    let end = (_isOpen: false): void => {}
    const ended = new Promise<false>((resolve) => (end = resolve))
    let explain = (_why: string): void => {}
    const reason = new Promise<string>((resolve) => (explain = resolve))
    const admitted = new Promise<boolean>((resolve) => {
      const transport = transportOf(
        { subscribe: [] },
        {
          onConnect: () => void transport.publish(`larder/v1/${user}/up/entries`, '{}').then(resolve),
          onDisconnect(why) {
            end(false)
            explain(why)
            resolve(false)
          },
          onMessage: () => {},
        },
      )
      onTestFinished(() => transport.close())
    })
    return { admitted, ended, reason }
  }
  const isAdmitted = (certified: Certified) => open(certified).admitted
  return { db, authorities, ordered, endSession, reload, certify, open, isAdmitted }
}

service('mosquitto')(
  'the session of a revoked board at Mosquitto ends, again if it returns, and for good when Mosquitto has the list of revoked certificates',
  async () => {
    const { db, ordered, endSession, reload, certify, open, isAdmitted } = await world()
    const [first, other] = [await certify(1), await certify(2)]
    await expect.poll(() => isAdmitted(first), { timeout: 20_000 }).toBe(true)
    const staying = open(other)
    expect(await staying.admitted).toBe(true)
    // Mosquitto takes the client id from the certificate, so no hub ends the session of another one.
    await open({ ...first, user: 'hub-2' }).admitted
    const opened = open(first)
    expect(await opened.admitted).toBe(true)

    await db.transact((tx) => revokeHub(tx, runtime, 1))
    await expect(endSession()).rejects.toThrow('accepts a revoked certificate')
    expect(await opened.ended).toBe(false)
    // The broker's list is old, so the board returns. Each further attempt ends its session again.
    const returned = open(first)
    expect(await returned.admitted).toBe(true)
    await expect(endSession()).rejects.toThrow('accepts a revoked certificate')
    expect(await returned.ended).toBe(false)
    const last = open(first)
    expect(await last.admitted).toBe(true)

    await reload([first.serial])
    await expect.poll(() => endSession().catch(() => 'again'), { timeout: 20_000 }).toEqual({ next: null })
    expect(await last.ended).toBe(false)
    expect(await isAdmitted(first)).toBe(false)
    // The reason may be lost with the connection.
    const isKnownAsRevoked = async () => isCertificateRevoked(await open(first).reason)
    await expect.poll(isKnownAsRevoked, { timeout: 20_000 }).toBe(true)
    expect([...new Set(ordered)]).toEqual([1])

    // A new board of the hub keeps its session.
    await db.kysely.updateTable('hubs').set({ revoked_at: null }).where('id', '=', 1).execute()
    const next = open(await certify(1))
    expect(await next.admitted).toBe(true)
    await expect.poll(() => endSession().catch(() => 'again'), { timeout: 20_000 }).toEqual({ next: null })
    const stay = sleep(runtime.clock, 500).then(() => 'open')
    expect(await Promise.race([next.ended, staying.ended, stay])).toBe('open')
  },
)

service('mosquitto')(
  'during a rotation the session of a revoked board ends for good when Mosquitto has the lists of both authorities',
  async () => {
    const { db, authorities, endSession, reload, certify, isAdmitted } = await world({ isRotated: true })
    const [former, newer] = [await certify(1), await certify(1, authorities[0])]
    await expect.poll(() => isAdmitted(former), { timeout: 20_000 }).toBe(true)
    await db.transact((tx) => revokeHub(tx, runtime, 1))
    await reload([newer.serial])
    await expect.poll(() => isAdmitted(newer), { timeout: 20_000 }).toBe(false)
    await expect(endSession()).rejects.toThrow('accepts a revoked certificate')
    await reload([newer.serial], [former.serial])
    await expect.poll(() => endSession().catch(() => 'again'), { timeout: 20_000 }).toEqual({ next: null })
    expect(await isAdmitted(former)).toBe(false)
  },
)
