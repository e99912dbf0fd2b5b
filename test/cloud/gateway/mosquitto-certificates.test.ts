import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { newSerial, openAuthority } from '../../../cloud/enrolment/authority.ts'
import { CLOCK_TOLERANCE_MS } from '../../../cloud/gateway/lost-certificates.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { upTopic } from '../../../protocol/mqtt/topics.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { loadX509, P256, privatePem } from '../../../protocol/x509.ts'
import { onPath } from '../../support/on-path.ts'
import { freePorts } from '../../support/ports.ts'
import { service } from '../../support/services.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'

const runtime = systemRuntime()
const now = runtime.clock.now()
const validity = { from: now - CLOCK_TOLERANCE_MS, until: now + CLOCK_TOLERANCE_MS }

service('mosquitto')(
  'Mosquitto admits hubs by the certificates of the cloud’s authority, and refuses those in its list of revoked ones',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-mosquitto-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const authority = await openAuthority(testContext(db, runtime))
    const server = await authority.makeServer(['127.0.0.1'], validity)
    const [port] = (await freePorts(1)) as [number]
    const list = (serials: readonly string[]) =>
      authority.listRevoked(
        serials.map((serial) => ({ serial, revokedAt: now })),
        validity,
      )
    const configuration = file(
      'mosquitto.conf',
      [
        ...(process.getuid?.() === 0 ? ['user root'] : []),
        `listener ${port} 127.0.0.1`,
        `cafile ${file('ca.pem', authority.certificate)}`,
        `certfile ${file('server.pem', server.cert)}`,
        `keyfile ${file('server-key.pem', server.key)}`,
        `crlfile ${file('crl.pem', await list([]))}`,
        'require_certificate true',
        'use_identity_as_username true',
        `acl_file ${file('acl', 'pattern write larder/v1/%u/up/#\npattern read larder/v1/%u/down/#\n')}`,
        '',
      ].join('\n'),
    )
    const start = () => {
      const child = spawn(onPath('mosquitto')!, ['-c', configuration], { stdio: 'ignore' })
      const ended = new Promise((resolve) => child.once('close', resolve))
      return async () => {
        child.kill('SIGKILL')
        await ended
      }
    }
    let stop = start()
    onTestFinished(() => stop())

    async function certify(hubId: number) {
      const { PublicKey } = await loadX509()
      const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
      const serial = newSerial(runtime.random)
      const publicKey = await PublicKey.create(keys.publicKey)
      const cert = await authority.signHub(publicKey, { hubId, serial, ...validity })
      return { serial, client: { cert, key: await privatePem(keys.privateKey) } }
    }
    /** Whether a hub with a certificate is admitted, may subscribe for itself, and may publish. */
    const isAdmitted = (user: string, client: { cert: string; key: string }): Promise<boolean> =>
      new Promise((resolve) => {
        const url = `mqtts://127.0.0.1:${port}`
        const open = mqttTransport({
          urls: [url],
          user,
          password: undefined,
          client: () => client,
          ca: authority.certificate,
          runtime,
        })
        const transport = open(
          { subscribe: [] },
          {
            onConnect: () => void transport.publish(upTopic(1, 'entries'), '{}').then(resolve),
            onDisconnect: () => resolve(false),
            onMessage: () => {},
          },
        )
        onTestFinished(() => transport.close())
      })
    const [first, second] = [await certify(1), await certify(1)]
    await expect.poll(() => isAdmitted('hub-1', first.client), { timeout: 20_000 }).toBe(true)
    expect(await isAdmitted('hub-1', second.client)).toBe(true)
    file('crl.pem', await list([first.serial]))
    await stop()
    stop = start()
    await expect.poll(() => isAdmitted('hub-1', second.client), { timeout: 20_000 }).toBe(true)
    expect(await isAdmitted('hub-1', first.client)).toBe(false)
  },
)
