import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { tryLogin } from '../../cloud/gateway/try-login.ts'
import type { Storefront } from '../../protocol/contract/consumer-products.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { testIssuer } from '../cloud/support/tokens.ts'
import { violationsOf } from '../invariants/check.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { balanced, type BalancedHub } from './chaos/balanced.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { install, WAIT_MS } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'
import type { ProgramName } from './chaos/plant-settings.ts'
import type { Plant } from './chaos/plant.ts'
import { roomOf } from './chaos/room.ts'
import { emptyAllBins } from './chaos/staff.ts'

const runtime = systemRuntime()
const { clock } = runtime
const secrets = ['STORE_SECRET', 'MEDIA_SECRET', 'PAYMENTS_WEBHOOK_SECRET'] as const

/** An outside issuer of identity tokens. */
async function issuerAt(): Promise<{ url: string; token: (sub: string) => Promise<string> }> {
  const issuer = await testIssuer(runtime)
  const server = createServer((request, response) => {
    const documents = {
      '/jwks': { keys: [issuer.publicJwk] },
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/jwks` },
    }
    const found = (documents as Record<string, object>)[request.url!]
    response
      .writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' })
      .end(JSON.stringify(found ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, token: (sub) => issuer.token({ iss: url, sub, is_anonymous: true }) }
}

test('a cloud gets a new issuer of identities and new secrets, an owner gets a new key, and hubs get a new password, certificates, a token and a PIN while customers buy, and no sale fails', async () => {
  const [tlsPort] = (await freePorts(1)) as [number]
  const [former, present] = [await issuerAt(), await issuerAt()]
  const [commands, ofSecond] = [
    new Map<ProgramName, readonly string[]>(),
    new Map<ProgramName, readonly string[]>(),
  ]
  const use = (issuers: string, valueOf: (name: string) => string): void =>
    void commands.set('cloud-1', [
      'env',
      `IDENTITY_ISSUER=${issuers}`,
      ...secrets.map((secret) => `${secret}=${valueOf(secret)}`),
      ...commandOf('cloud/main'),
    ])
  const values = (): Map<string, string> =>
    new Map(secrets.map((secret) => [secret, randomHex(runtime.random, 16)]))
  const [ofBefore, ofNow] = [values(), values()]
  const old = (secret: string) => ofBefore.get(secret)!
  const young = (secret: string) => ofNow.get(secret)!
  use(former.url, old)
  const cloud = { MQTT_TLS_PORT: String(tlsPort), HUB_CERTIFICATE_MS: '60000', COMMAND_TIMEOUT_MS: '10000' }
  const installation = await install({ kind: { type: 'bare' }, commands, cloud })
  const { plant, room, becomes, serves, roll, failures } = installation
  const second = await installation.addHub(ofSecond)
  plant.start()
  await serves()
  second.plant.start()
  const own: BalancedHub = { plant, room }
  const other: BalancedHub = { ...second }
  const token = randomHex(runtime.random, 16)
  const hubs = [
    { plant, room },
    { ...second, room: roomOf({ ...second.plant, hubToken: token }, clock) },
  ]
  /** A hub takes no order during a restart of its program; paid orders continue. */
  const restarts = async (of: Plant, at: BalancedHub, sellsAgain: (id: number) => Promise<void>) => {
    const begun = (at.restarts?.begun ?? 0) + 1
    at.restarts = { isNow: true, begun }
    await of.stop('hub')
    of.start('hub')
    await sells(of.hubId)
    at.restarts = { isNow: false, begun }
    await sellsAgain(of.hubId)
  }
  const sells = (hubId: number) =>
    becomes(`hub ${hubId} sells`, async () => {
      const shop = await fetch(`${plant.cloudUrls[0]}/hubs/${hubId}`).catch(() => undefined)
      return shop?.ok === true && ((await shop.json()) as Storefront).closed_reason === null
    })
  let tokenOf = former.token
  for (const id of [1, 2]) await sells(id)
  const auditors = await Promise.all(hubs.map((hub) => createAuditor(hub.plant, hub.room)))
  onTestFinished(async () => void (await Promise.all(auditors.map((auditor) => auditor.close()))))
  const larder = (...words: string[]) => operate(plant, ...words)
  const statusWith = async (headers: Record<string, string>, path: string) =>
    (await fetch(plant.cloudUrls[0]! + path, { headers: { ...headers, Connection: 'close' } })).status
  const byKey = (key: string) => statusWith({ 'X-API-Key': key }, '/api/v1/owners/hubs')
  /** The answer of a hub's page to a person who signs in. */
  const signsIn = async (of: Plant, login: object) =>
    (
      await fetch(`${of.hubUrl}/api/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Connection: 'close' },
        body: JSON.stringify(login),
      })
    ).status
  /** Whether the page of hub 1 accepts a PIN. A changed PIN arrives with the next settings of the hub. */
  const accepts = (pin: string, isAccepted: boolean) =>
    becomes(`hub 1 ${isAccepted ? 'accepts' : 'refuses'} a PIN of Ann Larkin`, async () => {
      const status = await signsIn(plant, { name: 'Ann Larkin', pin })
      return status === (isAccepted ? 200 : 401)
    })
  /** The answer of the broker to a password of hub 1. An accepted one ends the hub's own connection. */
  const signsInWith = (password: string) =>
    tryLogin({ url: plant.brokerUrl, ca: undefined, user: 'hub-1', password }, clock)
  const isRenewed = () =>
    Promise.resolve(
      readFileSync(second.plant.places.log('hub'), 'utf8').includes('the certificate is renewed'),
    )

  /** Passwords of hub 1, the latest last. */
  const passwords = [plant.seed.mqtt_password]
  const calls = await balanced(
    installation,
    async (sellsAgain) => {
      const both = () => Promise.all([sellsAgain(1), sellsAgain(2)])
      await both()
      use(`${present.url},${former.url}`, (secret) => `${young(secret)},${old(secret)}`)
      await roll(() => {})
      // Some apps have the new issuer already.
      tokenOf = (name) => (name.endsWith('0') ? former : present).token(name)
      await both()
      tokenOf = present.token
      await both()
      use(present.url, young)
      await roll(() => {})

      const { api_key: key } = plant.seed.owner
      const prefix = key.split('_').at(1)!
      const rotated = await larder('keys', 'rotate', prefix, '--overlap', '1')
      expect([await byKey(key), await byKey(String(rotated['api_key']))]).toEqual([200, 200])
      await larder('keys', 'revoke', prefix)
      await expect.poll(() => byKey(key), { timeout: 30_000 }).toBe(401)
      expect(await byKey(String(rotated['api_key']))).toBe(200)

      const { mqtt_password } = await larder('hubs', 'renew-password', '1', '--overlap', '1')
      passwords.push(String(mqtt_password))
      await sellsAgain(1)
      commands.set('hub', [
        'env',
        `MQTT_PASSWORD=${String(mqtt_password)}`,
        // A changed PIN is tried until it has arrived.
        'LOCAL_GUESS_FREE=1000',
        ...commandOf('edge/main'),
      ])
      await restarts(plant, own, sellsAgain)

      expect(await signsIn(second.plant, { token: second.plant.hubToken })).toBe(200)
      const enrols = async () => {
        const { claim_code } = await larder('hubs', 'claim-code', '2')
        const [node, ...main] = commandOf('edge/enrolment/enrol-main')
        await promisify(execFile)(
          node,
          [...main, '--cloud', plant.cloudUrls[0]!, '--code', String(claim_code)],
          {
            env: { PATH: process.env['PATH'], STORE: second.plant.places.journal },
          },
        )
        await restarts(second.plant, other, sellsAgain)
      }
      ofSecond.set('hub', [
        'env',
        '-u',
        'MQTT_URL',
        '-u',
        'MQTT_PASSWORD',
        `LOCAL_TOKEN=${token}`,
        'CERTIFICATE_AGAIN_MS=500',
        ...commandOf('edge/main'),
      ])
      await enrols()
      expect(await signsIn(second.plant, { token })).toBe(200)
      expect(await signsIn(second.plant, { token: second.plant.hubToken })).toBe(401)
      await becomes('the certificate is renewed', isRenewed)
      await sellsAgain(2)
      // A second enrolment ends the former certificate.
      await enrols()

      const person = ['--name', 'Ann Larkin', '--hubs', '1,2']
      await larder('people', 'add', ...person, '--pin', '271828')
      await accepts('271828', true)
      await larder('people', 'remove', '--name', 'Ann Larkin')
      await larder('people', 'add', ...person, '--pin', '314159')
      await accepts('314159', true)
      await accepts('271828', false)
      await both()
    },
    { hubs: [own, other], shoppers: 2, tokenOf: (name) => tokenOf(name) },
  )
  expect(calls.failed).toEqual([])
  expect(failures).toEqual([])
  expect(
    await statusWith(
      { Authorization: `Bearer ${await former.token('balanced-1-0')}` },
      '/users/1/orders/1?hub_id=1',
    ),
  ).toBe(401)
  for (const [index, hub] of hubs.entries()) {
    expect(await untilQuiet(auditors[index]!, clock, WAIT_MS)).toBeUndefined()
    expect(await emptyAllBins({ room: hub.room, clock })).toBe(true)
    expect(violationsOf(await auditors[index]!.evidence())).toEqual([])
  }
  // Without an overlap every former password ends.
  const { mqtt_password: latest } = await larder('hubs', 'renew-password', '1')
  for (const password of passwords) expect(await signsInWith(password)).toBe('refused')
  expect(await signsInWith(String(latest))).toBe('accepted')
}, 480_000)
