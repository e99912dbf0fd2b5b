import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes, type AedesPublishPacket, type Client } from 'aedes'
import type { Log } from '../../protocol/model/log.ts'
import { downFilter, parseUpTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import { digestOf, isSameDigest } from '../platform/credentials/secrets.ts'
import type { CloudDatabase } from '../platform/store/database.ts'

export interface EmbeddedBrokerOptions {
  db: CloudDatabase
  log: Log
  /** 0: any free one. */
  port: number
  host?: string
}

export interface EmbeddedBroker {
  /** The port that it listens on. */
  port: number
  /** The cloud's own connection, within the process. */
  openTransport: OpenTransport
  /** Hubs connected now. */
  clientCount(): number
  close(): Promise<void>
}

const MAX_PACKET_BYTES = 1024 * 1024
/** A client that takes nothing for so long is cut off: aedes lets the publisher, and so all others, wait for it. */
const DRAIN_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 10_000

/**
 * The MQTT broker inside the cloud's process (SPEC §2): hubs sign in with the passwords whose digests are in `hubs`, and
 * reach their own topics only.
 */
export async function startEmbeddedBroker({
  db,
  log,
  port,
  host = '127.0.0.1',
}: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  const hubs = new WeakMap<Client, number>()
  const broker = await Aedes.createBroker({
    drainTimeout: DRAIN_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    authenticate(client, username, password, done) {
      signIn(db, client.id, username, password).then(
        (hubId) => {
          if (hubId !== undefined) hubs.set(client, hubId)
          else log.warn({ user: username, client: client.id }, 'MQTT client refused')
          done(null, hubId !== undefined)
        },
        (error: unknown) => {
          log.error({ err: error }, 'MQTT client could not be checked')
          done(null, false)
        },
      )
    },
    authorizePublish(client, packet, done) {
      const hubId = client === null ? undefined : hubs.get(client)
      const isOurs = client === null || (hubId !== undefined && mayPublish(hubId, packet.topic))
      if (!isOurs) log.warn({ hubId, topic: packet.topic }, 'MQTT client may not publish there')
      done(isOurs ? null : new Error('not authorized'))
    },
    authorizeSubscribe(client, subscription, done) {
      const hubId = hubs.get(client)
      const isOurs = hubId !== undefined && maySubscribe(hubId, subscription.topic)
      if (!isOurs) log.warn({ hubId, topic: subscription.topic }, 'MQTT client may not subscribe to that')
      done(null, isOurs ? subscription : null)
    },
  })
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    limitPackets(socket, MAX_PACKET_BYTES)
    broker.handle(socket)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    openTransport: inProcessTransport(broker),
    clientCount: () => broker.connectedClients,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await new Promise<void>((resolve) => broker.close(resolve))
    },
  }
}

/** The hub that user name and password belong to. A client id that is not its user's could end another's connection. */
async function signIn(
  db: CloudDatabase,
  clientId: string,
  user: string | undefined,
  password: Buffer | undefined,
): Promise<number | undefined> {
  const hubId = hubOfUser(user ?? '')
  const hub =
    hubId === undefined
      ? undefined
      : await db.kysely
          .selectFrom('hubs')
          .select('mqtt_password_digest')
          .where('id', '=', hubId)
          .executeTakeFirst()
  // Compared for unknown users too, so that the time taken does not tell which exist.
  const matches = isSameDigest(
    digestOf(password?.toString() ?? ''),
    hub?.mqtt_password_digest ?? digestOf(''),
  )
  return matches && hub !== undefined && clientId === user ? hubId : undefined
}

/** The hub that a user name belongs to. */
function hubOfUser(user: string): number | undefined {
  const match = /^hub-([1-9]\d{0,9})$/.exec(user)
  return match ? Number(match[1]) : undefined
}

/** A hub's rights (SPEC §2). Anything else, shared subscriptions included, is refused. */
const mayPublish = (hubId: number, topic: string): boolean => parseUpTopic(topic)?.hubId === hubId
const maySubscribe = (hubId: number, filter: string): boolean => filter === downFilter(hubId)

function inProcessTransport(broker: Aedes): OpenTransport {
  return ({ subscribe }, handlers) => {
    let open = true
    const deliver = (packet: AedesPublishPacket, done: () => void): void => {
      if (open) handlers.onMessage(packet.topic, packet.payload.toString())
      done()
    }
    const subscribed = subscribe.map(
      (topic) => new Promise<void>((resolve) => broker.subscribe(topic, deliver, resolve)),
    )
    void Promise.all(subscribed).then(() => {
      if (open) handlers.onConnect()
    })
    return {
      publish(topic, payload, { retain = false } = {}) {
        if (!open) return Promise.resolve(false)
        const packet = { cmd: 'publish', qos: 1, dup: false, topic, payload, retain } as const
        return new Promise((resolve) => broker.publish(packet, (error) => resolve(!error)))
      },
      close() {
        open = false
        for (const topic of subscribe) broker.unsubscribe(topic, deliver, () => {})
      },
    }
  }
}

/**
 * Follows MQTT's fixed headers (3.1.1 §2.2) through a stream of bytes, to notice a packet that is too long when its header
 * comes, before anybody collects its body.
 */
export class PacketSizes {
  readonly #maxBytes: number
  /** Bytes of the present packet's body that are still to come. */
  #body = 0
  /** The bytes of the remaining length that were read: -1 before the packet's first byte. */
  #lengthBytes = -1
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Takes the next bytes. False: a packet is longer than allowed, or its length is malformed. */
  accept(chunk: Uint8Array): boolean {
    let at = 0
    while (at < chunk.length) {
      if (this.#body > 0) {
        const step = Math.min(this.#body, chunk.length - at)
        this.#body -= step
        at += step
        continue
      }
      const byte = chunk[at++]!
      if (this.#lengthBytes < 0) {
        this.#lengthBytes = 0
        this.#length = 0
        continue
      }
      this.#length += (byte & 0x7f) * 128 ** this.#lengthBytes
      this.#lengthBytes += 1
      const isLast = byte < 0x80
      if (this.#length > this.#maxBytes || (!isLast && this.#lengthBytes === 4)) return false
      if (!isLast) continue
      this.#body = this.#length
      this.#lengthBytes = -1
    }
    return true
  }
}

/**
 * Ends a connection that sends a packet longer than `maxBytes`. It stands before the stream's buffer, so that the broker,
 * which has no such limit, never sees those bytes.
 */
function limitPackets(socket: Socket, maxBytes: number): void {
  const sizes = new PacketSizes(maxBytes)
  const push = socket.push.bind(socket)
  socket.push = (chunk: Uint8Array | null, encoding) => {
    if (chunk === null || sizes.accept(chunk)) return push(chunk, encoding)
    socket.destroy(new Error('MQTT packet is too long'))
    return false
  }
}
