import * as net from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import * as stream from 'node:stream'
import * as tls from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openBrokerSocket } from '../../../protocol/mqtt/broker-socket.ts'
import { certificateTime, type CertificateTime } from '../../../protocol/mqtt/certificates.ts'
import { makeAuthority, type TestAuthority } from '../../support/certificate.ts'

const DAY = 86_400_000
const LOOPBACK = 'DNS:localhost,IP:127.0.0.1,IP:::1'
const SECRET = 'a password'

let authority: TestAuthority
let other: TestAuthority
const servers: Server[] = []

beforeAll(() => {
  authority = makeAuthority({ fromDay: -400, toDay: 400 })
  other = makeAuthority({ fromDay: -400, toDay: 400 })
})
afterAll(() => {
  authority.remove()
  other.remove()
})
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server that answers any data with `welcome`; `received` collects the data. */
async function serve(
  certificate: { cert: string; key: string } | undefined,
  host = '127.0.0.1',
): Promise<{ port: number; received: string[] }> {
  const received: string[] = []
  const answer = (socket: net.Socket): void => {
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk.toString())
      // A PINGRESP, so that the answer is a valid packet.
      socket.write(Buffer.of(0xd0, 0x00))
    })
  }
  const server = certificate ? tls.createServer(certificate, answer) : net.createServer(answer)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return { port: (server.address() as AddressInfo).port, received }
}

/**
 * Connects, sends the secret, and returns `welcomed` or the error. `days`: how far the machine's clock is
 * behind.
 */
function call(
  url: string,
  options: { ca?: string; days?: number; certainDays?: number } = {},
): Promise<string> {
  const { ca, days = 0, certainDays = days } = options
  const time = (): CertificateTime => ({
    clock: Date.now(),
    latest: Date.now() + days * DAY,
    certain: Date.now() + certainDays * DAY,
  })
  return new Promise((resolve) => {
    const socket = openBrokerSocket(url, { modules: { net, tls, stream }, ca: ca ?? authority.ca, time })
    socket.write(SECRET)
    socket.once('error', (error) => resolve(error.message))
    socket.once('data', () => {
      socket.destroy()
      resolve('welcomed')
    })
    socket.once('close', () => resolve('closed'))
  })
}

describe('the certificate of a broker', () => {
  test('a broker’s certificate is accepted if it is valid now and names the host, also an IPv6 host', async () => {
    const certificate = authority.issue('now', LOOPBACK, { fromDay: -1, toDay: 30 })
    for (const [listen, host] of [
      ['127.0.0.1', '127.0.0.1'],
      ['127.0.0.1', 'localhost'],
      ['::1', '[::1]'],
    ] as const) {
      const { port, received } = await serve(certificate, listen)
      expect(await call(`mqtts://${host}:${port}`)).toBe('welcomed')
      expect(received).toEqual([SECRET])
    }
  })

  test('a broker’s certificate that is not yet valid by the machine’s clock is accepted if it is valid by the journal or the build', async () => {
    const { port } = await serve(authority.issue('future', LOOPBACK, { fromDay: 1, toDay: 30 }))
    expect(await call(`mqtts://127.0.0.1:${port}`)).toMatch(
      /is not yet valid: it begins on .*its clock shows/,
    )
    expect(await call(`mqtts://127.0.0.1:${port}`, { days: 2 })).toBe('welcomed')
    expect(await call(`mqtts://localhost:${port}`, { days: 2 })).toBe('welcomed')
  })

  test('a damaged file of authorities fails the connection, not the program', async () => {
    const ca = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
    const { port, received } = await serve(authority.issue('now', LOOPBACK, { fromDay: -1, toDay: 30 }))
    expect(await call(`mqtts://127.0.0.1:${port}`, { ca })).toMatch(/MQTT_CA/)
    expect(received).toEqual([])
  })

  test('no byte is sent to a broker with a certificate of an unknown authority, another name or another use', async () => {
    const dates = { fromDay: 1, toDay: 30 }
    const refused: [RegExp, { cert: string; key: string }][] = [
      [/unknown authority/, other.issue('foreign', LOOPBACK, dates)],
      [/another name/, authority.issue('elsewhere', 'DNS:broker.example', dates)],
      [/not for servers/, authority.issue('client', LOOPBACK, dates, 'clientAuth')],
    ]
    for (const [reason, certificate] of refused) {
      const { port, received } = await serve(certificate)
      expect(await call(`mqtts://127.0.0.1:${port}`, { days: 2 })).toMatch(reason)
      expect(received).toEqual([])
    }
  })

  test('an expired certificate is refused by the latest certain time, whatever the machine’s clock shows', async () => {
    const expired = await serve(authority.issue('expired', LOOPBACK, { fromDay: -30, toDay: -1 }))
    expect(await call(`mqtts://127.0.0.1:${expired.port}`)).toMatch(/has expired/)
    const { port, received } = await serve(authority.issue('short', LOOPBACK, { fromDay: -1, toDay: 1 }))
    expect(await call(`mqtts://127.0.0.1:${port}`, { days: 2 })).toMatch(/has expired on/)
    expect(received).toEqual([])
    const future = await serve(authority.issue('both', LOOPBACK, { fromDay: 1, toDay: 2 }))
    expect(await call(`mqtts://127.0.0.1:${future.port}`, { days: 3 })).toMatch(/has expired on/)
    // The board's clock alone proves no expiry: it may once have been ahead.
    expect(await call(`mqtts://127.0.0.1:${port}`, { days: 900, certainDays: 0 })).toBe('welcomed')
  })

  test('a broker’s certificate is refused if its authority has expired, or is not an authority', async () => {
    const short = makeAuthority({ fromDay: -10, toDay: 3 })
    const leaf = makeAuthority({ fromDay: -10, toDay: 300 }, 'basicConstraints=CA:false')
    const dates = { fromDay: 1, toDay: 30 }
    const first = await serve(short.issue('first', LOOPBACK, dates))
    expect(await call(`mqtts://127.0.0.1:${first.port}`, { ca: short.ca, days: 5 })).toMatch(/has expired/)
    const second = await serve(leaf.issue('second', LOOPBACK, dates))
    expect(await call(`mqtts://127.0.0.1:${second.port}`, { ca: leaf.ca, days: 5 })).toMatch(
      /unknown authority|not accepted/,
    )
    short.remove()
    leaf.remove()
  })

  test('a broker’s certificate of an unknown authority is refused, and the reason names MQTT_CA', async () => {
    const { port, received } = await serve(authority.issue('known', LOOPBACK, { fromDay: -1, toDay: 30 }))
    expect(await call(`mqtts://127.0.0.1:${port}`, { ca: other.ca })).toMatch(
      /of an unknown authority: MQTT_CA does not hold it/,
    )
    const time = (): CertificateTime => certificateTime(Date.now(), 0)
    const socket = openBrokerSocket(`mqtts://127.0.0.1:${port}`, { modules: { net, tls, stream }, time })
    const error = await new Promise<Error>((resolve) => socket.once('error', resolve))
    expect(error.message).toMatch(/of an unknown authority: set MQTT_CA to the file of its authority/)
    expect(received).toEqual([])
  })
})

describe('a connection to a broker', () => {
  test('a hub connects to a broker at an IPv6 address', async () => {
    const { port } = await serve(undefined, '::1')
    expect(await call(`mqtt://[::1]:${port}`)).toBe('welcomed')
  })

  test('a connection ends at the header of a packet above 1 MiB, and its bytes are not collected', async () => {
    for (const certificate of [undefined, authority.issue('flood', LOOPBACK, { fromDay: -1, toDay: 30 })]) {
      let sent = 0
      const flood = (socket: net.Socket): void => {
        socket.on('error', () => {})
        socket.write(Buffer.from('3000d00030ffffff7f', 'hex'))
        const more = (): void => {
          while (!socket.destroyed && sent < 64 * 1024 * 1024 && socket.write(Buffer.alloc(65_536)))
            sent += 65_536
        }
        socket.on('drain', more)
        more()
      }
      const server = certificate ? tls.createServer(certificate, flood) : net.createServer(flood)
      servers.push(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const time = (): CertificateTime => certificateTime(Date.now(), 0)
      const url = `${certificate ? 'mqtts' : 'mqtt'}://127.0.0.1:${port}`
      const socket = openBrokerSocket(url, { modules: { net, tls, stream }, ca: authority.ca, time })
      let received = 0
      socket.on('data', (chunk: Buffer) => (received += chunk.length))
      const error = await new Promise<Error>((resolve) => socket.once('error', resolve))
      expect(error.message).toBe('the other end announced an MQTT packet above the limit of 1 MiB')
      expect(received).toBe(0)
      expect(sent).toBeLessThan(32 * 1024 * 1024)
    }
  })
})
