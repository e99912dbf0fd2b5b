import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Aedes, type AedesPublishPacket, type Client } from 'aedes'
import { BACKLOG } from '../../protocol/model/bound-server.ts'
import type { Log } from '../../protocol/model/log.ts'
import { limitPackets, MAX_PACKET_BYTES, type PacketSizes } from '../../protocol/mqtt/packet-limit.ts'
import { downFilter, parseUpTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import { digestOf, isSameDigest } from '../platform/credentials/secrets.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import { background } from '../platform/work/background.ts'
import type { CloudDatabase } from '../platform/store/database.ts'
import { warnWithoutHubs } from '../platform/store/no-hubs.ts'
import { statement } from '../platform/store/statement.ts'

export interface EmbeddedBrokerOptions {
  db: CloudDatabase
  /** As the operator has set it. */
  databaseUrl: string
  log: Log
  /** Told of who is turned away. */
  refusals: CloudRefusals
  /** 0: any free one. */
  port: number
  host?: string
  /** PEM of a certificate with its chain, and its key: it takes `mqtts:` alone. */
  tls?: { cert: string; key: string }
  maxConnections?: number
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

/** Of a client that has not signed in: its names, its password and its will. */
const MAX_CONNECT_BYTES = 4096
/** A client that takes nothing for so long is cut off: the publisher waits for it. */
const DRAIN_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 10_000

/**
 * The MQTT broker inside the cloud's process (SPEC §2): hubs sign in with the passwords whose digests are in `hubs`, and
 * reach their own topics only.
 */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  const { port, host = '127.0.0.1', tls, refusals, maxConnections = 10_000 } = options
  /** How long a client's packets may be. */
  const sizes = new WeakMap<Client, PacketSizes>()
  const broker = await createBroker(options, (client) => sizes.get(client)?.allow(MAX_PACKET_BYTES))
  const sockets = new Set<Socket>()
  const handle = (socket: Socket): void => {
    const { remoteAddress = 'unknown' } = socket
    const limit = limitPackets(socket, MAX_CONNECT_BYTES, () => {
      refusals.note('mqtt_packet', remoteAddress, { why: 'a packet that is too long' })
    })
    sizes.set(broker.handle(socket), limit)
  }
  const server = tls
    ? createTlsServer({ noDelay: true, handshakeTimeout: CONNECT_TIMEOUT_MS, ...tls }, handle)
    : createServer({ noDelay: true }, handle)
  server.maxConnections = maxConnections
  // A handshake that fails is a stranger's affair; its socket is closed already.
  server.on('tlsClientError', () => {})
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    // Also later: a connection that the system has no means to accept must not end the service.
    server.on('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, resolve)
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

/** aedes with passwords and rights. */
function createBroker(
  { db, databaseUrl, log, refusals }: EmbeddedBrokerOptions,
  onSignedIn: (client: Client) => void,
): Promise<Aedes> {
  const hubs = new WeakMap<Client, number>()
  let isToldOfNone = false
  return Aedes.createBroker({
    // With a limit, messages beyond it wait in a queue behind whoever takes nothing; and what empties the queue calls itself for
    // each message that is delivered at once, so that some thousands of them overflow the stack.
    concurrency: 0,
    drainTimeout: DRAIN_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    authenticate(client, username, password, done) {
      signIn(db, client.id, username, password).then(
        (signedIn) => {
          if (typeof signedIn === 'number') {
            hubs.set(client, signedIn)
            onSignedIn(client)
          } else {
            const { remoteAddress = 'unknown' } = client.conn as Socket
            refusals.note('mqtt_login', remoteAddress, { why: signedIn, user: username, client: client.id })
          }
          done(null, typeof signedIn === 'number')
          if (signedIn === NO_SUCH_HUB && !isToldOfNone)
            background({ log }, 'a look for hubs', async () => {
              isToldOfNone = await warnWithoutHubs(db.kysely, log, databaseUrl)
            })
        },
        (error: unknown) => {
          log.error({ err: error }, 'MQTT client could not be checked')
          done(null, false)
        },
      )
    },
    authorizePublish(client, { topic }, done) {
      const hubId = client === null ? undefined : hubs.get(client)
      const isOurs = client === null || (hubId !== undefined && mayPublish(hubId, topic))
      if (!isOurs) refusals.note('mqtt_topic', `hub-${hubId}`, { why: 'may not publish there', topic })
      done(isOurs ? null : new Error('not authorized'))
    },
    authorizeSubscribe(client, subscription, done) {
      const hubId = hubs.get(client)
      const { topic } = subscription
      const isOurs = hubId !== undefined && maySubscribe(hubId, topic)
      if (!isOurs) refusals.note('mqtt_topic', `hub-${hubId}`, { why: 'may not subscribe to that', topic })
      done(null, isOurs ? subscription : null)
    },
  })
}

const NO_SUCH_HUB = 'no such hub in this database'
/** Why a client is turned away, as the log says it. */
type Turned = typeof NO_SUCH_HUB | 'wrong password' | 'the client id is not the user'

/** On SQLite it waits for none of the transactions that hubs which are there have set off. */
const hubPassword = statement((q, hub: { hubId: number }) =>
  q.selectFrom('hubs').select('mqtt_password_digest').where('id', '=', hub.hubId),
)

/** The hub that user name and password belong to, or why there is none. */
async function signIn(
  db: CloudDatabase,
  clientId: string,
  user: string | undefined,
  password: Buffer | undefined,
): Promise<number | Turned> {
  const hubId = hubOfUser(user ?? '')
  const [hub] = hubId === undefined ? [] : await hubPassword(db.kysely, { hubId })
  // Compared for unknown users too, so that the time taken does not tell which exist.
  const matches = isSameDigest(
    digestOf(password?.toString() ?? ''),
    hub?.mqtt_password_digest ?? digestOf(''),
  )
  if (hubId === undefined || hub === undefined) return NO_SUCH_HUB
  if (!matches) return 'wrong password'
  // It could end another hub's connection.
  return clientId === user ? hubId : 'the client id is not the user'
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
