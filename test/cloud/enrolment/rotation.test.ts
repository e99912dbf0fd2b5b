import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { certificatePort } from '../../../cloud/broker.ts'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { enrolmentHandlers, renewCertificate } from '../../../cloud/enrolment/enrol.ts'
import { authorityWork, retireFormer, rotateAuthority } from '../../../cloud/enrolment/rotation.ts'
import { certificateOf, revokeCertificates } from '../../../cloud/gateway/hub-certificates.ts'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { makeKey } from '../../../edge/enrolment/enrol.ts'
import { enrolmentFiles, readEnrolment } from '../../../edge/enrolment/enrolment.ts'
import { Renewal } from '../../../edge/enrolment/renewal.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { certificatesIn } from '../../../protocol/mqtt/certificates.ts'
import { parseMessage } from '../../../protocol/mqtt/parse-message.ts'
import { CertificateRequest } from '../../../protocol/mqtt/session.ts'
import { downFilter, downTopic, parseUpTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import type { MqttTransport } from '../../../protocol/mqtt/transport.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { loadX509 } from '../../../protocol/x509.ts'
import { freePorts } from '../../support/ports.ts'
import { virtualClock, virtualRuntime } from '../../world/clock.ts'
import { openCloud } from '../../world/cloud.ts'
import { testContext } from '../../world/context.ts'
import { onEachDatabase, type OpenDatabase } from '../../world/database.ts'

const HOUR = 3_600_000
const HOST = '127.0.0.1'
const SOON = { timeout: 20_000, interval: 20 }
const system = systemRuntime()

async function world(open: OpenDatabase) {
  const db = await open()
  const brokerCa = () => undefined
  const [port] = (await freePorts(1)) as [number]
  // TLS compares certificates with the real clock, so the clock of the cloud stays near it.
  const runtime = virtualRuntime(1, virtualClock(system.clock.now()))
  const context = testContext(db, runtime)
  context.settings.hubAuthorityDelayMs = 0
  const app = await openCloud({
    db,
    handlersOf: () => enrolmentHandlers(context, { mqttUrl: `mqtts://${HOST}:${port}`, brokerCa }),
  })
  const { clock } = runtime
  const served: number[] = []
  const ofHubs = [1, 2].map((id) => upTopic(id, 'certificate'))

  /** A process of the cloud: its broker, and its answers to requests for certificates. */
  async function startCloud() {
    const config = { HOST, MQTT_TLS_PORT: port, MQTT_HOST: HOST } as Parameters<typeof certificatePort>[0]
    const own = await certificatePort(config, context, {})
    const broker = await startEmbeddedBroker({
      db,
      databaseUrl: 'sqlite::memory:',
      log: silentLog,
      refusals: cloudRefusals({ log: silentLog, runtime: system }),
      clock: system.clock,
      port: 0,
      limits: { passwordCheckMs: 50 },
      ...own.port,
    })
    const cloud = broker.openTransport(
      { subscribe: [...ofHubs, upTopic(1, 'entries'), upTopic(2, 'entries')] },
      {
        onConnect() {},
        onDisconnect() {},
        onMessage(topic, payload) {
          const { hubId, channel } = parseUpTopic(topic)!
          if (channel === 'entries') return void served.push(hubId)
          const request = CertificateRequest.parse(parseMessage(payload))
          void renewCertificate(context, { brokerCa }, hubId, request).then(
            (answer) => answer && cloud.publish(downTopic(hubId, 'certificate'), JSON.stringify(answer)),
          )
        },
      },
    )
    return { ...broker, follow: () => own.follow(broker) }
  }
  let running = await startCloud()
  onTestFinished(() => running.close())
  const restart = async (): Promise<void> => {
    await running.close()
    running = await startCloud()
  }

  /** An enrolled board. */
  async function board(hubId: number) {
    const folder = mkdtempSync(join(tmpdir(), 'larder-rotation-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = join(folder, 'hub.sqlite')
    const paths = enrolmentFiles(store)
    const { code } = await db.transact((tx) => renewClaimCode(tx, context, hubId))
    const { key, csr } = await makeKey()
    const { json } = await app.call('POST', '/api/v1/enroll', { body: { claim_code: code, csr } })
    const enrolled = json as { certificate: string; ca: string }
    const texts = { key, certificate: enrolled.certificate, ca: enrolled.ca }
    for (const name of ['key', 'certificate', 'ca'] as const) writeFileSync(paths[name], texts[name])
    writeFileSync(paths.enrolment, JSON.stringify({ hub_id: hubId, mqtt_url: `mqtts://${HOST}:${port}` }))
    let transport: MqttTransport | undefined
    let isConnected = false
    let lives = 0
    /** A start of the hub's service with the files of the board. */
    function start(): void {
      const { cert, key: own, ca } = readEnrolment(store)!
      const renewal = new Renewal({
        hubId,
        store,
        client: { cert, key: own },
        ca,
        clock,
        log: silentLog,
        now: () => clock.now(),
        newKey: makeKey,
        againMs: HOUR,
      })
      const openTransport = mqttTransport({
        urls: [`mqtts://${HOST}:${port}`],
        user: `hub-${hubId}`,
        password: undefined,
        client: () => renewal.client(),
        ca: () => renewal.ca(),
        runtime: system,
      })
      const isOurs = (lives += 1)
      const connect = (): void => {
        if (lives !== isOurs) return
        transport = renewal.over(openTransport)(
          { subscribe: [downFilter(hubId)] },
          {
            onConnect: () => (isConnected = true),
            onDisconnect() {
              isConnected = false
              transport?.close()
              system.clock.after(50, connect)
            },
            onMessage() {},
          },
        )
      }
      connect()
    }
    const stop = (): void => {
      lives += 1
      transport?.close()
      isConnected = false
    }
    onTestFinished(stop)
    /** The hub reports a sale, and the cloud receives it. */
    async function sells(): Promise<void> {
      await expect.poll(() => isConnected, SOON).toBe(true)
      const before = served.length
      await expect.poll(() => transport!.publish(upTopic(hubId, 'entries'), '{}'), SOON).toBe(true)
      await expect.poll(() => served.slice(before), SOON).toContain(hubId)
    }
    const authorities = () => certificatesIn(readFileSync(paths.ca, 'utf8')).length
    return { hubId, store, start, stop, sells, authorities, first: { cert: enrolled.certificate, key } }
  }

  const work = (subject: string) =>
    authorityWork(context)['authority']!.run({ kind: 'authority', subject, attempts: 1 })
  const rotate = async (overlapMs: number) => {
    await db.transact((tx) => rotateAuthority(tx, clock.now(), overlapMs))
    const [row] = await db.kysely
      .selectFrom('due_work')
      .select('subject')
      .where('kind', '=', 'authority')
      .execute()
    return row!.subject
  }
  const authorityOf = async (hubId: number) => (await certificateOf(db.kysely, hubId, clock.now()))?.authority
  const text = async (path: string) => String((await app.call('GET', path)).json)
  const trusted = async () => certificatesIn(await text('/pki/ca.pem'))
  /** The issuer of the broker's certificate. */
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: HOST, port, rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().issuer.CN))
        socket.destroy()
      })
      socket.on('error', reject)
    })
  /** Whether the broker admits a client with this certificate. */
  const admits = async (client: { cert: string; key: string }) => {
    const open = mqttTransport({
      urls: [`mqtts://${HOST}:${port}`],
      user: 'hub-1',
      password: undefined,
      client: () => client,
      ca: (await trusted()).map(String).join(''),
      runtime: system,
    })
    return new Promise<boolean>((resolve) => {
      const end = (isAdmitted: boolean): void => {
        resolve(isAdmitted)
        transport.close()
      }
      const transport = open(
        { subscribe: [] },
        { onConnect: () => end(true), onDisconnect: () => end(false), onMessage() {} },
      )
    })
  }
  const follow = () => running.follow()
  return { db, clock, board, restart, follow, work, rotate, authorityOf, text, trusted, shown, admits }
}

onEachDatabase('the rotation of the authority', (open) => {
  test('hubs learn a new authority over MQTT, the broker shows it when every hub has it, and the former one ends with the overlap', async () => {
    const { clock, board, restart, follow, work, rotate, authorityOf, text, trusted, shown, admits, db } =
      await world(open)
    const [here, away] = [await board(1), await board(2)]
    here.start()
    away.start()
    for (const hub of [here, away]) await hub.sells()
    away.stop()
    clock.advance(60_000)

    const request = await rotate(2 * HOUR)
    await work(request)
    const names = (await trusted()).map(({ subject }) => subject.replace('CN=', ''))
    expect(names).toEqual([expect.stringMatching(/^Larder hubs [0-9a-f]{16}$/), 'Larder hubs'])
    await follow()
    await restart()
    // The hub asks when it is connected again. It gets the authorities first, and then a certificate of the new one.
    await expect.poll(() => authorityOf(1), SOON).toBe(2)
    expect([here.authorities(), away.authorities(), await authorityOf(2)]).toEqual([2, 1, 1])
    await here.sells()
    await follow()
    expect(await shown()).toBe('Larder hubs')
    const { X509Crl, PemConverter } = await loadX509()
    const lists = PemConverter.decodeWithHeaders(await text('/pki/crl.pem'))
    expect(lists.map(({ rawData }) => new X509Crl(rawData).issuer)).toEqual(names.map((name) => `CN=${name}`))

    await restart()
    away.start()
    await expect.poll(() => authorityOf(2), SOON).toBe(2)
    await follow()
    expect(await shown()).toBe(names[0])
    for (const hub of [here, away]) await hub.sells()
    await restart()
    for (const hub of [here, away]) await hub.sells()
    // Until the end of the overlap the broker admits certificates of both authorities.
    expect(await admits(here.first)).toBe(true)

    clock.advance(2 * HOUR)
    expect(await work(request)).toEqual({ next: null })
    await follow()
    expect((await trusted()).map(({ subject }) => subject)).toEqual([`CN=${names[0]}`])
    expect(await admits(here.first)).toBe(false)
    await restart()
    for (const hub of [here, away]) {
      await hub.sells()
      await expect.poll(() => hub.authorities(), SOON).toBe(1)
      // The board also starts with its files.
      hub.stop()
      hub.start()
      await hub.sells()
    }
    const audit = await db.kysely
      .selectFrom('audit_log')
      .select('action')
      .where('object', '=', 'ca')
      .execute()
    expect(audit.map(({ action }) => action)).toEqual(['ca.create', 'ca.retire'])
    const rows = await db.kysely.selectFrom('hub_authority').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY')
  })

  test('an authority is not retired while a hub has no certificate of the new one, and a second rotation waits', async () => {
    const { db, clock, board, work, rotate, authorityOf, trusted } = await world(open)
    const { store } = await board(1)
    await board(2)
    const request = await rotate(2 * HOUR)
    await work(request)
    const act = <T>(run: (tx: Parameters<typeof retireFormer>[0]) => Promise<T>) => db.transact(run)
    await expect(act((tx) => rotateAuthority(tx, clock.now(), HOUR))).rejects.toThrow('in progress')
    await expect(act((tx) => retireFormer(tx, clock.now(), { force: false }))).rejects.toThrow(': 1, 2.')
    await act((tx) => revokeCertificates(tx, 2, clock.now()))
    expect(await act((tx) => retireFormer(tx, clock.now()))).toEqual({ retired: [1], lost: [1] })
    expect(await authorityOf(1)).toBeUndefined()
    expect(await trusted()).toHaveLength(1)
    // The end of the former overlap does not request another authority.
    clock.advance(2 * HOUR)
    await work(request)
    expect(await trusted()).toHaveLength(1)
    expect(new X509Certificate(readEnrolment(store)!.cert).checkIssued((await trusted())[0]!)).toBe(false)
  })
})

test('an older hub, which does not report what it trusts, gets certificates of its authority until the end of the overlap', async () => {
  const runtime = virtualRuntime()
  const app = await openCloud({
    handlersOf: (made) => enrolmentHandlers(made, { mqttUrl: 'mqtts://x', brokerCa: () => undefined }),
  })
  const { db } = app.context
  const context = testContext(db, runtime)
  const { clock } = runtime
  const { code } = await db.transact((tx) => renewClaimCode(tx, app.context, 1))
  const { csr } = await makeKey()
  const { json } = await app.call('POST', '/api/v1/enroll', { body: { claim_code: code, csr } })
  const [former] = certificatesIn((json as { ca: string }).ca)
  await db.transact((tx) => rotateAuthority(tx, clock.now(), 90 * 24 * HOUR))
  await authorityWork(context)['authority']!.run({
    kind: 'authority',
    subject: `1 ${90 * 24 * HOUR}`,
    attempts: 1,
  })
  clock.advance(60 * 24 * HOUR)
  const answer = await renewCertificate(context, { brokerCa: () => undefined }, 1, { csr })
  const certificate = new X509Certificate(answer!.certificate!)
  expect([certificate.checkIssued(former!), answer!.ca]).toEqual([true, undefined])
  expect(Date.parse(certificate.validTo) - clock.now()).toBeLessThanOrEqual(30 * 24 * HOUR)
})
