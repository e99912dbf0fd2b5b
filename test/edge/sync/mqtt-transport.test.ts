import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { Aedes } from 'aedes'
import { writeToStream } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import type { MqttTransport, TransportHandlers, TransportOptions } from '../../../protocol/mqtt/transport.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

/** A real broker on loopback. */
let broker: Aedes
let server: Server
let sockets: Set<Socket>
let url: string
const opened: MqttTransport[] = []

beforeEach(async () => {
  broker = await Aedes.createBroker()
  sockets = new Set()
  server = createServer((socket) => {
    sockets.add(socket)
    broker.handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  for (const transport of opened.splice(0)) transport.close()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => broker.close(() => resolve(undefined)))
  await new Promise((resolve) => server.close(resolve))
})

interface Seen {
  transport: MqttTransport
  messages: [topic: string, payload: string][]
  connected: Promise<void>
  disconnected: Promise<string>
}

function open(
  options: Partial<TransportOptions> = {},
  extra: {
    onMessage?: TransportHandlers['onMessage']
    maxPendingBytes?: number
    grantTimeoutMs?: number
  } = {},
): Seen {
  const messages: [string, string][] = []
  let onConnect = (): void => {}
  let onDisconnect: (reason: string) => void = () => {}
  const connected = new Promise<void>((resolve) => (onConnect = resolve))
  const disconnected = new Promise<string>((resolve) => (onDisconnect = resolve))
  const { onMessage, maxPendingBytes, grantTimeoutMs } = extra
  const openTransport = mqttTransport({
    urls: [url],
    user: 'hub-1',
    password: 'x',
    runtime: systemRuntime(),
    ...(maxPendingBytes && { maxPendingBytes }),
    ...(grantTimeoutMs && { grantTimeoutMs }),
  })
  const transport = openTransport(
    { subscribe: ['down/#'], ...options },
    {
      onConnect,
      onDisconnect,
      onMessage(topic, payload) {
        messages.push([topic, payload])
        return onMessage?.(topic, payload)
      },
    },
  )
  opened.push(transport)
  return { transport, messages, connected, disconnected }
}

const publish = (topic: string, payload: string): Promise<void> =>
  new Promise((resolve, reject) =>
    broker.publish({ cmd: 'publish', topic, payload, qos: 1, retain: false, dup: false }, (error) =>
      error ? reject(error) : resolve(),
    ),
  )
const published = (topic: string): Promise<string> =>
  new Promise((resolve) => {
    broker.on('publish', (packet) => {
      if (packet.topic === topic) resolve(`${packet.retain ? 'retained ' : ''}${packet.payload.toString()}`)
    })
  })
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe('the MQTT transport', () => {
  test('the MQTT transport is connected when its subscriptions are granted, and carries messages both ways', async () => {
    const hub = open()
    await hub.connected
    const heard = published('up/x')
    expect(await hub.transport.publish('up/x', 'hello')).toBe(true)
    expect(await heard).toBe('hello')
    await publish('down/y', 'grüße')
    await until(() => hub.messages.length === 1)
    expect(hub.messages).toEqual([['down/y', 'grüße']])
  })

  test('the MQTT transport uses MQTT 3.1.1 with a clean session under the user’s name', async () => {
    const clients: unknown[] = []
    broker.on('clientReady', (client) => clients.push([client.id, client.version, client.clean]))
    const hub = open()
    await hub.connected
    expect(clients).toEqual([['hub-1', 4, true]])
  })

  test('the MQTT transport acknowledges a message after its handler has returned', async () => {
    const order: string[] = []
    broker.on('ack', () => order.push('acknowledged'))
    const hub = open({}, { onMessage: () => void order.push('handled') })
    await hub.connected
    await publish('down/y', '1')
    await until(() => order.length === 2)
    expect(order).toEqual(['handled', 'acknowledged'])
  })

  test('the broker publishes the transport’s will after a cut, and not after a close', async () => {
    const will = { topic: 'up/presence', payload: 'gone', retain: true }
    const hub = open({ will })
    await hub.connected
    const heard = published('up/presence')
    for (const socket of sockets) socket.destroy()
    expect(await heard).toBe('retained gone')
    await hub.disconnected

    const second = open({ will })
    await second.connected
    const left = new Promise((resolve) => broker.on('clientDisconnect', resolve))
    const wills: string[] = []
    broker.on('publish', ({ topic }) => wills.push(topic))
    void second.transport.publish('up/bye', 'bye')
    second.transport.close()
    await left
    expect(wills).toContain('up/bye')
    expect(wills).not.toContain('up/presence')
    expect(
      await Promise.race([
        second.disconnected,
        new Promise((resolve) => setImmediate(() => resolve('silent'))),
      ]),
    ).toBe('silent')
  })

  test('a connection with a refused subscription fails', async () => {
    broker.authorizeSubscribe = (_client, _subscription, done) => done(null, null)
    const hub = open()
    expect(await hub.disconnected).toMatch(/subscri/i)
    expect(await Promise.race([hub.connected.then(() => 'connected'), Promise.resolve('not')])).toBe('not')
  })

  test('a publication that the broker did not accept before the end of the connection returns false, and so does a later one', async () => {
    broker.authorizePublish = (_client, packet, done) => {
      if (packet.topic !== 'up/held') done(null)
    }
    const hub = open()
    await hub.connected
    const held = hub.transport.publish('up/held', '1')
    for (const socket of sockets) socket.destroy()
    expect(await held).toBe(false)
    await hub.disconnected
    expect(await hub.transport.publish('up/late', '2')).toBe(false)
  })

  test('the MQTT transport is used once and does not reconnect', async () => {
    const hub = open()
    await hub.connected
    for (const socket of sockets) socket.destroy()
    expect(await hub.disconnected).toEqual(expect.any(String))
    const connections = sockets.size
    const next = open()
    await next.connected
    expect(sockets.size).toBe(connections + 1)
  })

  test('the MQTT transport reports why it did not connect', async () => {
    broker.authenticate = (_client, _user, _password, done) => done(null, false)
    expect(await open().disconnected).toMatch(/not authorized/i)
    server.close()
    for (const socket of sockets) socket.destroy()
    expect(await open().disconnected).toMatch(/ECONNREFUSED/)
  })

  test('the MQTT transport ends when a subscription is refused', async () => {
    broker.authorizeSubscribe = (_client, _subscription, done) => done(null, null)
    expect(await open().disconnected).toBe('Subscribe error: the broker refuses down/# (granted 0 of 1)')
  })

  test('the MQTT transport ends if the broker does not answer a subscription, although it answers pings', async () => {
    broker.authorizeSubscribe = () => {}
    const hub = open({}, { grantTimeoutMs: 100 })
    expect(await hub.disconnected).toBe('the broker does not grant a subscription')
  })

  test('the MQTT transport disconnects from a broker that takes nothing, instead of queueing without end', async () => {
    broker.authorizePublish = () => {}
    const hub = open({}, { maxPendingBytes: 10_000 })
    await hub.connected
    const results = Array.from({ length: 20 }, () => hub.transport.publish('up/x', 'x'.repeat(1000)))
    expect(await hub.disconnected).toBe('the broker acknowledges no messages')
    expect(await Promise.all(results)).toEqual(Array(20).fill(false))
  })
})

test('the message lengths cached by mqtt.js hold only their own memory', () => {
  const written: Buffer[] = []
  const stream = { write: (bytes: Buffer) => written.push(bytes) > 0 } as unknown as Socket
  for (let length = 200; length < 300; length++) {
    written.length = 0
    const payload = Buffer.alloc(length)
    writeToStream({ cmd: 'publish', topic: 'up', payload, qos: 0, dup: false, retain: false }, stream)
    // After the first byte: the length of the rest.
    expect(written[1]!.length).toBe(2)
    expect(written[1]!.buffer.byteLength).toBeLessThanOrEqual(8)
  }
})
