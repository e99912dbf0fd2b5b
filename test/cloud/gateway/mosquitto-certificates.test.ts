import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { newSerial, openAuthority } from '../../../cloud/enrolment/authority.ts'
import { CLOCK_TOLERANCE_MS } from '../../../cloud/gateway/lost-certificates.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
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
  'Mosquitto refuses a revoked certificate after SIGHUP, and ends its open session only when Mosquitto restarts',
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
      const stop = async () => {
        child.kill('SIGKILL')
        await ended
      }
      return { stop, reload: () => child.kill('SIGHUP') }
    }
    let mosquitto = start()
    onTestFinished(() => mosquitto.stop())

    async function certify(hubId: number) {
      const { PublicKey } = await loadX509()
      const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
      const serial = newSerial(runtime.random)
      const publicKey = await PublicKey.create(keys.publicKey)
      const cert = await authority.signHub(publicKey, { hubId, serial, ...validity })
      return { serial, user: `hub-${hubId}`, client: { cert, key: await privatePem(keys.privateKey) } }
    }
    type Certified = Awaited<ReturnType<typeof certify>>
    /** Opens a session with a certificate. `ended` resolves when the session ends. */
    function open({ user, client }: Certified) {
      const transportOf = mqttTransport({
        urls: [`mqtts://127.0.0.1:${port}`],
        user,
        password: undefined,
        client: () => client,
        ca: authority.certificate,
        runtime,
      })
      let end = (_isOpen: boolean): void => {}
      const ended = new Promise<boolean>((resolve) => (end = resolve))
      const admitted = new Promise<boolean>((resolve) => {
        const transport = transportOf(
          { subscribe: [] },
          {
            onConnect: () => void transport.publish(`larder/v1/${user}/up/entries`, '{}').then(resolve),
            onDisconnect() {
              end(false)
              resolve(false)
            },
            onMessage: () => {},
          },
        )
        onTestFinished(() => transport.close())
      })
      return { admitted, ended }
    }
    const isAdmitted = (certified: Certified) => open(certified).admitted
    const [first, second, other] = [await certify(1), await certify(1), await certify(2)]
    await expect.poll(() => isAdmitted(first), { timeout: 20_000 }).toBe(true)
    expect(await isAdmitted(second)).toBe(true)
    const thief = open(first)
    expect([await thief.admitted, await isAdmitted(other)]).toEqual([true, true])
    file('crl.pem', await list([first.serial, other.serial]))
    mosquitto.reload()
    // A new connection of hub 1 would end its open session, so hub 2 shows that the list is in use.
    await expect.poll(() => isAdmitted(other), { timeout: 20_000 }).toBe(false)
    const stays = sleep(runtime.clock, 1000).then(() => true)
    expect(await Promise.race([thief.ended, stays])).toBe(true)
    await mosquitto.stop()
    mosquitto = start()
    expect(await thief.ended).toBe(false)
    await expect.poll(() => isAdmitted(second), { timeout: 20_000 }).toBe(true)
    expect(await isAdmitted(first)).toBe(false)
  },
)
