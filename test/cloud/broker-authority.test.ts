import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { Aedes } from 'aedes'
import { expect, onTestFinished } from 'vitest'
import { makeCertificateOfAuthority } from '../support/certificate.ts'
import { service } from '../support/services.ts'
import { startCloud } from './support/program.ts'

interface Line {
  level: number
  msg: string
  reason?: string
}

/** A broker with a certificate of a private authority. */
async function startBroker() {
  const certificate = makeCertificateOfAuthority()
  const broker = await Aedes.createBroker()
  const { cert, key } = certificate
  const server = createServer({ cert, key }, (socket) => void broker.handle(socket))
  // A client that does not trust the authority disconnects.
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await new Promise<void>((resolve) => broker.close(resolve))
    server.close()
    certificate.remove()
  })
  const { port } = server.address() as AddressInfo
  return { url: `mqtts://cloud:secret@localhost:${port}`, authorityPath: certificate.authorityPath }
}

const linesOf = (output: string): Line[] =>
  output.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []))

const readiness = async (port: number): Promise<number> =>
  (await fetch(`http://127.0.0.1:${port}/readyz`)).status

service('openssl')(
  'MQTT_CA makes the cloud trust a broker of a private authority; without it an error is logged, and the cloud is not ready',
  async () => {
    const { url, authorityPath } = await startBroker()
    const trusting = startCloud({ MQTT_URL: url, MQTT_CA: authorityPath })
    const trustingPort = await trusting.ready()
    await expect.poll(() => trusting.output(), { timeout: 20_000 }).toContain('connected to the broker')
    await expect.poll(() => readiness(trustingPort), { timeout: 20_000 }).toBe(200)
    expect(trusting.output()).not.toContain('cannot be reached')

    const other = startCloud({ MQTT_URL: url })
    const otherPort = await other.ready()
    const errors = () => linesOf(other.output()).filter(({ level }) => level === 50)
    await expect.poll(() => errors().length, { timeout: 20_000 }).toBeGreaterThan(0)
    expect(errors()[0]).toMatchObject({
      msg: 'the broker cannot be reached: no hub is served',
      reason: expect.stringMatching(/self-signed certificate in certificate chain|unable to/) as string,
    })
    expect(await readiness(otherPort)).toBe(503)
    expect(other.output()).not.toContain('connected to the broker')
  },
  60_000,
)

service('openssl')(
  'an unreadable MQTT_CA is reported in a sentence',
  async () => {
    const { exited, output } = startCloud({ MQTT_URL: 'mqtts://localhost:1', MQTT_CA: '/nowhere.pem' })
    expect(await exited).toBe(1)
    expect(output()).toMatch(
      /larder cloud: MQTT_CA: \/nowhere\.pem cannot be read: there is no such file \(ENOENT\)\n$/,
    )
  },
  60_000,
)
