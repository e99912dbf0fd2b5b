import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, Server as TlsServer, TLSSocket, type TlsOptions } from 'node:tls'
import { Aedes, type AedesPublishPacket, type Client } from 'aedes'
import { BACKLOG } from '../../protocol/model/bound-server.ts'
import { Budget, type Hold } from '../../protocol/model/budget.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import { downFilter, parseUpTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import { limitsOf, networkOf } from '../platform/limits/budgets.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import type { CloudDatabase } from '../platform/store/database.ts'
import { warnWithoutHubs } from '../platform/store/no-hubs.ts'
import type { Adoption } from './lost-certificates.ts'
import { BrokerSessions } from './broker-sessions.ts'
import { MessageAllowances, type MessageLimits } from './message-allowance.ts'
import { PacketGate } from './packet-gate.ts'
import {
  NO_SUCH_HUB,
  signIn,
  signInByCertificate,
  type ClientCertificate,
  type HubLogin,
  type LoginRefusal,
} from './hub-logins.ts'

type BrokerLimits = MessageLimits & Pick<GatewayLimits, 'passwordCheckMs'>

export interface EmbeddedBrokerOptions {
  db: CloudDatabase
  /** `DATABASE_URL` in the operator's form. */
  databaseUrl: string
  log: Log
  /** See `Adoption`. */
  onAdopted?: Adoption['onAdopted']
  /** Counts refused clients. */
  refusals: CloudRefusals
  /** 0 means any free port. */
  port: number
  host?: string
  /** The address of the port without TLS, if it is another one. */
  plainHost?: string
  /** PEM of a certificate with its chain, and its key. With it the port above accepts only `mqtts:`. */
  tls?: { cert: string; key: string }
  /** A further port for TLS. 0: any free one. */
  certificates?: { port: number } & PortCertificates
  /** The budget of connections before sign-in; by default that of the settings. */
  unsigned?: Budget
  clock: Clock
  /** How often passwords of connected hubs are checked, and how much a hub may send. */
  limits?: Partial<BrokerLimits>
}

/** The certificate of a port and its key, and the authorities of the hubs' certificates. PEM. */
export interface PortCertificates {
  cert: string
  key: string
  ca: string
}

export interface EmbeddedBroker {
  /** The listening port. */
  port: number
  /** The listening port for certificates; undefined without it. */
  certificatePort: number | undefined
  /** The cloud's own connection, within the process. */
  openTransport: OpenTransport
  /** The number of connected hubs. */
  clientCount(): number
  /** Uses another certificate for new connections. Throws if it cannot be used. Does nothing without TLS. */
  renewTls(tls: { cert: string | undefined; key: string | undefined }): void
  /** Uses other certificates for new connections to the port for certificates. */
  renewPort(certificates: PortCertificates): void
  close(): Promise<void>
}

/** A client that reads nothing for this long is disconnected, because the publisher waits for it. */
const DRAIN_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 10_000
/** Return code of CONNACK. */
const SERVER_UNAVAILABLE = 3

/**
 * The MQTT broker inside the cloud's process (SPEC §2). Hubs sign in with passwords (`hubs` has their digests) or
 * with certificates (`hub_certificates`), and reach only their own topics. A renewed password ends the session of the former one, before the hub's next message is
 * passed on or at the next check.
 */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  const { port, host = '127.0.0.1', tls, certificates, refusals, clock } = options
  const unsigned = new UnsignedConnections(options)
  const limits = { ...defaultLimits.gateway, ...options.limits }
  const allowances = new MessageAllowances({ clock, limits, refusals })
  const gates = new WeakMap<Client, PacketGate>()
  const { broker, endChecks } = await createBroker(options, limits, (client, hubId) => {
    gates.get(client)?.signedIn(allowances.of(hubId))
    unsigned.signedIn(client.conn as Socket)
  })
  const sockets = new Set<Socket>()
  const handle = (socket: Socket): void => {
    const { remoteAddress = 'unknown' } = socket
    const onTooLong = (): void =>
      refusals.note('mqtt_packet', remoteAddress, { why: 'a packet that is too long' })
    const gate = new PacketGate(socket, { clock, onTooLong })
    gates.set(broker.handle(socket), gate)
  }
  const secure = (options: TlsOptions): TlsServer =>
    createTlsServer({ noDelay: true, handshakeTimeout: CONNECT_TIMEOUT_MS, ...options }, handle)
  const open = async (server: Server, at: { port: number; host: string }): Promise<number> => {
    // A failed handshake concerns only the caller; its socket is already closed.
    server.on('tlsClientError', () => {})
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      unsigned.admit(socket)
    })
    await new Promise<void>((resolve, reject) => {
      // Also after the start: if the system cannot accept a connection, the service must continue.
      server.on('error', reject)
      server.listen({ ...at, backlog: BACKLOG }, resolve)
    })
    return (server.address() as AddressInfo).port
  }
  const server = tls ? secure(tls) : createServer({ noDelay: true }, handle)
  // A client without a certificate may sign in with its password, so the handshake accepts every client.
  const secured = certificates && secure({ ...certificates, requestCert: true, rejectUnauthorized: false })
  const servers = secured ? [server, secured] : [server]
  const listening = await open(server, { port, host: options.plainHost ?? host })
  let hubAuthorities = certificates?.ca
  const certificatePort = secured && (await open(secured, { port: certificates.port, host }))
  return {
    port: listening,
    certificatePort,
    openTransport: inProcessTransport(broker),
    clientCount: () => broker.connectedClients,
    renewTls({ cert, key }) {
      if (server instanceof TlsServer) server.setSecureContext({ cert, key })
      if (cert !== undefined) secured?.setSecureContext({ cert, key, ca: hubAuthorities })
    },
    renewPort({ cert, key, ca }) {
      hubAuthorities = ca
      secured?.setSecureContext({ cert, key, ca })
    },
    async close() {
      endChecks()
      for (const socket of sockets) socket.destroy()
      await Promise.all(servers.map((each) => new Promise((resolve) => each.close(resolve))))
      await new Promise<void>((resolve) => broker.close(resolve))
    },
  }
}

/**
 * Connections before sign-in. Each network has a share. A new connection ends the oldest one of its network, or at the
 * total the oldest one of the largest network. So silent sockets keep no hub from the broker, even a hub in the same
 * network.
 */
class UnsignedConnections {
  readonly #budget: Budget
  readonly #refusals: CloudRefusals
  /** By peer, because over TLS a client's socket differs from its connection. */
  readonly #holds = new Map<string, Hold>()

  constructor({ unsigned, refusals }: Pick<EmbeddedBrokerOptions, 'unsigned' | 'refusals'>) {
    this.#budget = unsigned ?? new Budget(limitsOf(defaultLimits.rules, 'brokerUnsigned'))
    this.#refusals = refusals
  }

  admit(socket: Socket): void {
    const network = networkOf(socket.remoteAddress ?? 'unknown')
    const refuse = (): void => {
      this.#refusals.note('mqtt_login', network, { why: 'too many connections before a sign-in' })
      socket.destroy()
    }
    const { hold } = this.#budget.take({ network }, { evict: refuse })
    if (!hold) return refuse()
    const peer = peerOf(socket)
    this.#holds.set(peer, hold)
    socket.on('close', () => {
      hold.release()
      if (this.#holds.get(peer) === hold) this.#holds.delete(peer)
    })
  }

  signedIn(socket: Socket): void {
    this.#holds.get(peerOf(socket))?.release()
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

async function createBroker(
  options: EmbeddedBrokerOptions,
  { passwordCheckMs }: BrokerLimits,
  onSignedIn: (client: Client, hubId: number) => void,
): Promise<{ broker: Aedes; endChecks: Cancel }> {
  const { db, databaseUrl, log, refusals, clock } = options
  const q = db.kysely
  let isToldOfNone = false

  function refuse(client: Client, why: LoginRefusal, user: string | undefined): void {
    const { remoteAddress = 'unknown' } = client.conn as Socket
    refusals.note('mqtt_login', remoteAddress, { why, user, client: client.id })
  }

  const sessions = new BrokerSessions({
    q,
    clock,
    publish: (topic, payload) => broker.publish({ ...MESSAGE, topic, payload }, () => {}),
    refuse,
  })

  const broker = await Aedes.createBroker({
    // Without a limit. With one, messages queue behind a client that reads nothing, and aedes empties that queue
    // recursively: thousands of messages would overflow the stack.
    concurrency: 0,
    drainTimeout: DRAIN_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    authenticate(client, user, password, done) {
      const certificate = certificateOf(client.conn)
      const checked = certificate
        ? signInByCertificate(db, options, { clientId: client.id, user, certificate })
        : signIn(q, clock.now(), { clientId: client.id, user, password })
      checked.then(
        (signedIn) => {
          if (typeof signedIn === 'object') {
            sessions.begin(client, signedIn)
            onSignedIn(client, signedIn.hubId)
          } else refuse(client, signedIn, user)
          done(null, typeof signedIn === 'object')
          if (signedIn === NO_SUCH_HUB && !isToldOfNone)
            background({ log }, 'a look for hubs', async () => {
              isToldOfNone = await warnWithoutHubs(q, log, databaseUrl)
            })
        },
        (error: unknown) => {
          log.error({ err: error }, 'MQTT client could not be checked')
          // A hub must not report a good password or certificate as refused.
          done(
            Object.assign(new Error('the database does not answer'), { returnCode: SERVER_UNAVAILABLE }),
            false,
          )
        },
      )
    },
    authorizePublish(client, packet, done) {
      const { topic } = packet
      if (client === null) return done(null)
      const login = sessions.loginOf(client)
      if (login === undefined || !mayPublish(login, topic)) {
        refusals.note('mqtt_topic', `hub-${login?.hubId}`, { why: 'may not publish there', topic })
        return done(new Error('not authorized'))
      }
      // Nobody at this broker could read retained messages of hubs; they would only fill memory.
      packet.retain = false
      void sessions.mayAct(client, login).then((may) => {
        if (sessions.isErasing(client) && parseUpTopic(topic)?.channel !== 'erased') packet.topic = IGNORED
        done(may ? null : new Error('not authorized'))
      })
    },
    authorizeSubscribe(client, subscription, done) {
      const hubId = sessions.loginOf(client)?.hubId
      const { topic } = subscription
      const isOurs = hubId !== undefined && maySubscribe(hubId, topic)
      if (!isOurs) refusals.note('mqtt_topic', `hub-${hubId}`, { why: 'may not subscribe to that', topic })
      done(null, isOurs ? subscription : null)
    },
  })
  const endChecks = everyInBackground({ log, runtime: { clock } }, passwordCheckMs, 'passwords of hubs', () =>
    sessions.endAll(),
  )
  return { broker, endChecks }
}

const MESSAGE = { cmd: 'publish', qos: 1, dup: false, retain: false } as const
/** No hub and no cloud uses this topic. The broker moves messages of a revoked board here, except its confirmation. */
const IGNORED = 'larder/v1/ignored'

/** The certificate of a client, if the hubs' authority has signed it. */
function certificateOf(connection: unknown): ClientCertificate | undefined {
  if (!(connection instanceof TLSSocket) || !connection.authorized) return undefined
  const { subject, issuer, serialNumber, valid_from: from, valid_to: until } = connection.getPeerCertificate()
  // A client without a certificate has an empty one.
  if (serialNumber === undefined) return undefined
  const validity = { from: Date.parse(from), until: Date.parse(until) }
  const names = { user: String(subject.CN), issuer: String(issuer.CN) }
  return { ...names, serial: serialNumber.toLowerCase(), ...validity }
}

/** The rights of a hub (SPEC §2). Everything else is refused, including shared subscriptions. */
function mayPublish(login: HubLogin, topic: string): boolean {
  const address = parseUpTopic(topic)
  // A password must not become a certificate, which would outlive it.
  return address?.hubId === login.hubId && (address.channel !== 'certificate' || 'serial' in login)
}
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
