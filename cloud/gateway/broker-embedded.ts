import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes, type AedesPublishPacket, type Client } from 'aedes'
import type { Log } from '../../protocol/model/log.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import { digestOf, isSameDigest } from '../platform/credentials/secrets.ts'
import type { CloudDatabase } from '../platform/store/database.ts'
import { hubOfUser, mayPublish, maySubscribe } from './broker-rights.ts'
import { limitPackets } from './packet-limit.ts'

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
/** A client that takes nothing for so long is cut off: meanwhile it holds up all others (facts, MQTT). */
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
